/** Phrases for times, each by the period that it means. */
export const periods = {
  '~1d': 'today|last day|past day|this day|since yesterday|intraday|day|this morning|24h|last night',
  '~yesterday': 'yesterday',
  '~1w': 'this past week|this week|last week|past week|the week|over the week|week|lately',
  '~1mo': 'this past month|this month|last month|past month|the month|over the month|month',
  '~3mo': 'this quarter|last quarter|past quarter',
  '~1y': 'this year|last year|past year|ytd|year to date|the year',
  '~all': 'all time|ever|so far|in total|since the beginning',
  tf1d: 'daily|daily chart|on the daily|1d chart|daily candles|daily timeframe',
  tf1h: 'hourly|hourly chart|on the hourly|hourly candles',
  tf1w: 'weekly|weekly chart|on the weekly|weekly candles',
  PAST_SPAN:
    'last|past|over the last|over the past|in the last|in the past|during the last|for the last|previous|since|do since',
  FUTURE:
    'later|tomorrow|tonight|next week|next month|later today|this evening|end of day|end of the week|end of week',
  TOMORROW: 'tomorrow',
  EVERY: 'every|each|per',
}
