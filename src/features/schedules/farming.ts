import type { StrategyFields } from '#engines/strategy-terms/strategy-schemas.ts'
import { type Caller, toActScope } from '#kernel/contract/caller.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import { preparedAct } from '#kernel/contract/operation.ts'
import type { ScheduleInputOf } from './contract.ts'
import * as changes from './create-and-update.ts'
import type { FarmingView } from './farming-schemas.ts'
import { requireSchedule, type ScheduleDeps, viewOf } from './schedule-deps.ts'
import type { ScheduleView } from './schedule-schemas.ts'
import type { ScheduleRow } from './store.ts'
import { compiledOf, configOf } from './views.ts'

/** This module shows and sets day trades in the form of the interface, whose names and defaults are its own. */

type FarmingInput = ScheduleInputOf<'setDayTradeFarming'>

const defaults = { leverage: 1, is_cross: true, slippage_pct: '0.5', tp_is_market: true, sl_is_market: true }
const venueNames: readonly string[] = ['hyperliquid', '999']

function assertFarming({ type }: Pick<ScheduleRow, 'type'>): void {
  if (type === 'day_trade_farming') return
  throw new Fault(
    'conflict',
    `The schedule has the type ${type}: \`schedules_create\` makes one with the type day_trade_farming`,
    { extras: { type } },
  )
}

/** Returns the input of an edit that sets the day trades, and lets them run or rest. */
function editOf(input: FarmingInput): ScheduleInputOf<'update'> {
  const { schedule_id, expected_version, enabled, farming_config: given } = input
  return {
    schedule_id,
    ...(expected_version !== undefined && { expected_version }),
    config: fieldsOf(given),
    status: enabled ? 'active' : 'draft',
  }
}

function fieldsOf(given: FarmingInput['farming_config']): StrategyFields {
  const { chain_id, order_notional_usd: usd, order_size: size, ...rest } = given
  if (chain_id !== undefined && !venueNames.includes(chain_id.toLowerCase()))
    throw invalid(
      'farming_config.chain_id',
      'value_error',
      'Value error: day trades are made at `hyperliquid`',
      {
        allowed: venueNames,
      },
    )
  const hasBoth = isGiven(usd) && isGiven(size)
  if (hasBoth || !(isGiven(usd) || isGiven(size)))
    throw exactlyOneOf('farming_config.order_notional_usd', 'farming_config.order_size', { hasBoth })
  return {
    asset: 'BTC',
    ...rest,
    ...(isGiven(usd) && { order_notional_usd: usd }),
    ...(isGiven(size) && { order_size: size }),
  }
}

const isGiven = <Value>(value: Value | null | undefined): value is Value =>
  value !== undefined && value !== null

/** Throws a refusal of a field of the edit as one of the field of the interface. */
function ofFarming(error: unknown): never {
  if (!(error instanceof Fault) || error.code !== 'validation') throw error
  const issues = error.issues.map(({ path: [first, ...rest], ...issue }) => ({
    ...issue,
    path: [first === 'config' ? 'farming_config' : first, ...rest].filter((part) => part !== undefined),
  }))
  throw new Fault('validation', error.message, { cause: error, extras: error.extras, issues })
}

const numberOf = (text: string | undefined): number | null => (text === undefined ? null : Number(text))

/** Shows a schedule of day trades. */
function farmingView(row: ScheduleRow, view: ScheduleView): FarmingView {
  const fields = { ...defaults, ...configOf(row) }
  const { asset = '', order_notional_usd: usd, order_size: size, leverage } = fields
  const { leverageMax = null } = compiledOf(row)
  const isClipped = leverageMax !== null && leverageMax < leverage
  return {
    schedule_id: row.id,
    version: row.version,
    enabled: row.status === 'active',
    farming_config: {
      chain_id: 'hyperliquid',
      asset: `hl:perp:${asset}`,
      order_notional_usd: numberOf(usd),
      order_notional_usd_decimal: usd ?? null,
      order_size: numberOf(size),
      order_size_decimal: size ?? null,
      leverage,
      is_cross: fields.is_cross,
      slippage_pct: Number(fields.slippage_pct),
      tp_is_market: fields.tp_is_market,
      sl_is_market: fields.sl_is_market,
    },
    effective_leverage: isClipped ? leverageMax : leverage,
    clipped_by: isClipped ? 'market' : null,
    per_day_max_usd: view.compiled.per_day_max_usd,
    mode: view.mode,
    status: view.status,
    status_reason: view.status_reason,
    next_runs: view.next_runs,
    updated_at: view.updated_at,
  }
}

/** Returns the row of a schedule of day trades; throws if it is another one. */
async function requireFarming({ db }: ScheduleDeps, { userId }: Caller, id: string): Promise<ScheduleRow> {
  const row = await requireSchedule(db, userId, id)
  assertFarming(row)
  return row
}

/** Makes the operations that show and set day trades. */
export const createFarming = (deps: ScheduleDeps) => ({
  async dayTradeFarming({ schedule_id }: ScheduleInputOf<'dayTradeFarming'>, caller: Caller) {
    const row = await requireFarming(deps, caller, schedule_id)
    return farmingView(row, viewOf(deps, row, await deps.factsOf(caller.userId)))
  },
  setDayTradeFarming: preparedAct(
    async (given: FarmingInput, caller) => {
      await requireFarming(deps, caller, given.schedule_id)
      const input = editOf(given)
      return { input, ...(await changes.prepareUpdate(deps, input, caller).catch(ofFarming)) }
    },
    async ({ input, ...prepared }, caller, request) => {
      const act = toActScope(request)
      const view = await changes.update(deps, input, prepared, { caller, act })
      return farmingView(await requireSchedule(act.tx, caller.userId, input.schedule_id), view)
    },
  ),
})
