/** Users with a live strategy of day trades, which a person has activated. */
import type pg from 'pg'
import { newId } from '../venue/strategy-rows.ts'
import type { Customer } from './crash-app.ts'

export type Farmer = {
  customer: Customer
  strategyId: string
  zone: string
  asset: string
  leverage: number
  isCross: boolean
  /** Whether the person holds something that was bought by hand, and on which side. */
  manual: boolean | undefined
  manualSize: string
}
type Terms = Pick<Farmer, 'zone' | 'asset' | 'leverage' | 'isCross'> & {
  authority: object
  isMarket: boolean
  guards: object
  firstSlotMs: number
  /** Left out: every quarter of an hour. */
  slotSeconds?: number
}
const manualSizes: Readonly<Record<string, string>> = { BTC: '0.0007', ETH: '0.021', SOL: '0.4' }

/** A strategy whose slots are closes of quarters of an hour. */
export async function addFarmer<Owner extends { agentId: string }>(
  admin: pg.Pool,
  { customer, ...terms }: Terms & { customer: Owner },
): Promise<Omit<Farmer, 'customer'> & { customer: Owner }> {
  const { authority, zone, asset, leverage, isCross, isMarket, guards, firstSlotMs } = terms
  const strategyId = newId()
  const first = new Date(firstSlotMs)
  const calendar = {
    type: 'interval',
    every_seconds: terms.slotSeconds ?? 900,
    timezone: zone,
    starts_at: first.toISOString(),
  }
  const config = {
    asset,
    order_notional_usd: '300',
    leverage,
    is_cross: isCross,
    slippage_pct: '1',
    tp_is_market: isMarket,
    sl_is_market: true,
  }
  await admin.query(
    `with owner as (select id from app_user where agent_id = $2), made as (
       insert into strategy (id, user_id, title, version, status, notify, next_at, activated_at, created_at, updated_at)
       select $1, id, 'Day trades', 1, 'active', 'all', $3, now(), now(), now() from owner)
     insert into strategy_version (strategy_id, version, type, query, agent, mode, calendar, on_missed, catch_up_seconds,
       config, guards, budget_usd, paper_balance_usd, compiled, authority, created_at)
     values ($1, 1, 'day_trade_farming', 'Day trades', 'ProAgent', 'live', $4, 'run_latest', 600, $5, $6, 100000, 1000, $7, $8, now())`,
    [
      strategyId,
      customer.agentId,
      first,
      JSON.stringify(calendar),
      JSON.stringify(config),
      JSON.stringify(guards),
      JSON.stringify({ operations: [], notes: [] }),
      JSON.stringify(authority),
    ],
  )
  return {
    customer,
    strategyId,
    zone,
    asset,
    leverage,
    isCross,
    manual: undefined,
    manualSize: manualSizes[asset]!,
  }
}
