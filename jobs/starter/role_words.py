"""Words of columns' names that say what is in them, in English, German, French and Spanish, the likeliest first.

Words of one meaning stand beside each other. They are in lower case and without accents, as `column_readings.words`
gives them.
"""

from __future__ import annotations


def _numbered(*stems: str) -> tuple[str, ...]:
    """German nouns, and what is made of them with a number: kunden, kundennummer, kundennr, kundenid."""
    return tuple(stem + end for stem in stems for end in ("", "nummer", "nr", "id"))


TIME = (
    *("timestamp", "zeitstempel", "horodatage"),
    *("time", "zeit", "zeitpunkt", "uhrzeit", "heure", "hora"),
    *("ts", "at", "datetime", "date", "datum", "fecha", "when", "wann", "quand", "cuando", "moment", "momento"),
    *("occurred", "created", "erstellt", "cree", "creado", "epoch", "utc", "day", "tag", "jour", "dia"),
)
NAME = (
    *("event", "ereignis", "ereignistyp", "ereignisart", "evenement", "evento"),
    *("activity", "aktivitat", "aktivitaet", "activite", "actividad"),
    *("action", "aktion", "accion", "type", "typ", "tipo", "name"),
    *("operation", "vorgang", "operacion", "verb", "kind", "status", "statut", "state", "zustand", "etat", "estado"),
    *("what", "step", "schritt", "etape", "paso", "page", "seite", "pagina"),
    *("message", "meldung", "nachricht", "mensaje", "topic", "thema"),
    *("code", "category", "kategorie", "categorie", "categoria", "letter"),
)
KEY = (
    *("case", "trace", "fallnummer", "fallnr", "vorgangsnummer", "vorgangsnr", "dossier", "caso", "expediente"),
    *("user", *_numbered("benutzer", "nutzer", "anwender"), "utilisateur", "usuario"),
    *("customer", "kunde", *_numbered("kunden"), "cliente", "account", *_numbered("konto"), "compte", "cuenta"),
    *("session", "sitzung", *_numbered("sitzungs"), "sesion"),
    *("device", "gerat", "geraet", *_numbered("gerate", "geraete"), "appareil", "dispositivo", "client"),
    *("visitor", *_numbered("besucher"), "visiteur", "visitante"),
    *("member", "mitglied", *_numbered("mitglieds"), "membre", "miembro", "player", "spieler", "joueur", "jugador"),
    *("patient", *_numbered("patienten"), "paciente", "machine", "maschine", *_numbered("maschinen"), "maquina"),
    *("vehicle", *_numbered("fahrzeug"), "vehicule", "vehiculo", "sensor", "capteur"),
    *("card", "karte", *_numbered("karten"), "carte", "tarjeta"),
    *("order", "auftrag", "bestellung", *_numbered("auftrags", "bestell"), "commande", "pedido"),
    *("subscriber", "abonnent", "abonne", "abonado", "employee", *_numbered("mitarbeiter"), "employe", "empleado"),
    *("host", "ip", "station", "who", "wer", "qui", "quien", "entity", "key", "uid"),
    *("id", "kennung", "identifiant", "identificador"),
)
CIRCUMSTANCE = (
    *("channel", "kanal", "canal", "source", "quelle", "fuente", "medium", "browser", "platform"),
    *("campaign", "kampagne", "campagne", "campana", "segment"),
    *("country", "land", "pays", "pais", "city", "stadt", "ville", "ciudad", "region"),
    *("language", "sprache", "langue", "idioma", "currency", "wahrung", "waehrung", "devise", "moneda"),
)
"""Texts that repeat as names of events do, and say where or how something happened, not what."""
NO_NAME = (
    *("first", "last", "full", "file", "host", "case", "trace"),
    *("user", "benutzer", "nutzer", "utilisateur", "usuario", "customer", "kunde", "kunden", "cliente"),
    *("account", "konto", "compte", "cuenta", "country", "land", "pays", "pais", "city", "stadt", "ville", "ciudad"),
)
"""Beside these, a word of a name is somebody's or somewhere's: `customer_type`, `country_code`."""
STEP = ("step", "schritt", "etape", "paso")
PROBABILITY = (
    *("probability", "prob", "wahrscheinlichkeit", "probabilite", "probabilidad"),
    *("confidence", "konfidenz", "confiance", "confianza", "certainty", "likelihood"),
)
ID = ("id", "uuid", "uid", "kennung", "identifiant", "identificador")
CODE = (
    *("id", "uuid", "uid", "code", "no", "nr", "nummer", "numero", "sku"),
    *("zip", "plz", "postleitzahl", "phone", "telefon", "telephone", "telefono", "plate", "kennzeichen"),
)
"""Of columns whose values are texts, though they may look like numbers."""
PARTS = (
    ("year", "jahr", "annee", "ano"),
    ("month", "monat", "mois", "mes"),
    ("day", "tag", "jour", "dia"),
    ("hour", "stunde", "heure", "hora"),
    ("minute", "minuto"),
    ("second", "sekunde", "seconde", "segundo"),
)
"""Of the parts of a time, each a column of its own."""
