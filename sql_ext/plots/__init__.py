"""Pictures of answers, by matplotlib: each function takes a frame and draws on axes, which it returns."""

from patternlake.sql_ext.plots.forecasts import forecasts
from patternlake.sql_ext.plots.funnel import funnel
from patternlake.sql_ext.plots.paths import paths
from patternlake.sql_ext.plots.timeline import timeline
from patternlake.sql_ext.plots.trends import trends

__all__ = ["forecasts", "funnel", "paths", "timeline", "trends"]
