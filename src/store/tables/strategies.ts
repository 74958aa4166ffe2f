type Jsonb = object
type Amount = string

export type StrategyStatus = 'draft' | 'active' | 'paused' | 'disabled' | 'completed'
export type StrategyType = 'prompt' | 'dca' | 'rebalance' | 'condition' | 'day_trade_farming'
export type StrategyMode = 'paper' | 'live'
export type ExecutionType = 'scheduled' | 'catch_up' | 'manual' | 'exit' | 'paper' | 'backtest'
export type SkipReason =
  | 'overlap'
  | 'missed'
  | 'frozen'
  | 'no_credits'
  | 'cooldown'
  | 'guard'
  | 'budget'
  | 'insufficient_balance'
  | 'market_closed'
  | 'asset_in_use'
  | 'foreign_position'
  | 'policy_denied'
  | 'access_ended'
  | 'approval_expired'
  | 'model_unavailable'

export type StrategyRow = {
  id: string
  user_id: string
  title: string
  version: number
  status: StrategyStatus
  status_reason: string | null
  thread_id: string | null
  notify: 'all' | 'failures' | 'none'
  next_at: Date | null
  following_at: Date | null
  tz_version: string | null
  execution_count: number
  run_count: number
  skipped_count: number
  last_run_at: Date | null
  activated_at: Date | null
  recommended_at: Date | null
  created_at: Date
  updated_at: Date
}
export type StrategyVersionRow = {
  strategy_id: string
  version: number
  type: StrategyType
  query: string
  agent: string
  mode: StrategyMode
  calendar: Jsonb | null
  max_runs: number | null
  on_missed: 'run_latest' | 'skip'
  catch_up_seconds: number
  config: Jsonb | null
  guards: Jsonb | null
  tools_allowed: string[] | null
  budget_usd: Amount | null
  paper_balance_usd: Amount
  compiled: Jsonb | null
  authority: Jsonb | null
  approval_id: string | null
  created_at: Date
}
export type StrategyExecutionRow = {
  id: string
  strategy_id: string
  user_id: string
  version: number
  number: number
  execution_type: ExecutionType
  mode: StrategyMode
  slot: Date | null
  first_slot: Date | null
  skipped_slots: number
  status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled'
  outcome: 'executed' | 'not_executed' | 'partial' | 'unknown' | null
  skip_reason: SkipReason | null
  error: Jsonb | null
  decision: Jsonb | null
  summary: string | null
  answer: string | null
  chat_id: string | null
  credits_used: number | null
  spent_usd: Amount | null
  realized_pnl_usd: Amount | null
  usage: Jsonb | null
  rating: number | null
  rating_comment: string | null
  rated_at: Date | null
  authority: Jsonb | null
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
}
export type StrategyRecommendationRow = {
  id: string
  strategy_id: string
  subject: string
  priority: 'now' | 'soon' | 'later'
  category: 'execution' | 'risk' | 'logic' | 'config' | 'research'
  title: string
  why: string
  steps: Jsonb
  evidence: Jsonb
  action: Jsonb | null
  status: 'open' | 'accepted' | 'declined'
  created_at: Date
  expires_at: Date | null
}
export type StrategyAccountRow = {
  id: string
  strategy_id: string
  mode: StrategyMode
  user_id: string
  version: number
  state: Jsonb
  cursor: Jsonb
  watch_at: Date | null
  opened_at: Date
  updated_at: Date
  drift: Jsonb | null
}
export type StrategyDecisionRow = {
  execution_id: string
  seq: number
  strategy_id: string
  at: Date
  decision: string
  inputs_sha256: string
  inputs: Jsonb
}
export type StrategyFillRow = {
  strategy_id: string
  mode: StrategyMode
  fill_id: bigint
  execution_id: string | null
  asset: string
  is_buy: boolean
  size: Amount
  price: Amount
  fee_usd: Amount
  realized_pnl_usd: Amount | null
  reason: string
  is_exit: boolean
  at: Date
}
export type CandleRow = {
  market: string
  span: string
  start_ms: bigint
  open: Amount
  high: Amount
  low: Amount
  close: Amount
  volume: Amount
}
export type CandleSeriesRow = {
  market: string
  span: string
  filled_from_ms: bigint
  filled_to_ms: bigint
  followed_until: Date
}
export type StrategyTables = {
  candle: CandleRow
  candle_series: CandleSeriesRow
  funding_rate: { market: string; at_ms: bigint; rate: Amount }
  funding_series: { market: string; filled_from_ms: bigint; filled_to_ms: bigint }
  strategy: StrategyRow
  strategy_version: StrategyVersionRow
  strategy_execution: StrategyExecutionRow
  strategy_event: { execution_id: string; seq: number; type: string; data: Jsonb; created_at: Date }
  strategy_recommendation: StrategyRecommendationRow
  strategy_account: StrategyAccountRow
  strategy_decision: StrategyDecisionRow
  strategy_fill: StrategyFillRow
  strategy_equity: { strategy_id: string; mode: StrategyMode; at: Date; equity_usd: Amount }
  strategy_spend: { task_id: string; strategy_id: string; usd_micros: bigint; at: Date }
  strategy_spend_total: { strategy_id: string; usd_micros: bigint }
  paper_levels: { user_id: string; market: string; block_ms: bigint; bids: Jsonb; asks: Jsonb }
  strategy_asset: { user_id: string; market: string; strategy_id: string }
  strategy_file: {
    file_id: string
    strategy_id: string
    execution_id: string | null
    path: string
    size: number
    created_at: Date
  }
}
