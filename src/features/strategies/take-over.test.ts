import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryGuard, type GuardConfig } from '#market/strategies/guards.ts'
import { applyGuards, openRun, type RunConfig, type StrategyRun } from '#market/strategies/strategy-run.ts'
import { takenOver } from './take-over.ts'

const usd = 1_000_000n
const [dayMs, noonMs] = [86_400_000, 43_200_000]
const configBy = (guards: Omit<GuardConfig, 'on_trip'>): RunConfig => ({
  decision: { strategy: { type: 'dca', asset: 'BTC', amount_usd: '100' }, markets: {} },
  guards: { ...guards, on_trip: 'flatten' },
  budgetMicros: null,
})
const accountOf = (run: StrategyRun) => ({
  id: '',
  strategy_id: '',
  mode: 'paper' as const,
  user_id: '',
  version: 1,
  watch_at: null,
  opened_at: new Date(0),
  updated_at: new Date(0),
  cursor: {},
  run,
})
/** An account that began its day with 1,000 USD. */
const withCash = (cash: bigint): StrategyRun => {
  const run = openRun(1_000n * usd, dayMs)
  return { ...run, account: { ...run.account, cashMicros: cash * usd } }
}
const blockedBy = ({ guards }: StrategyRun, config: RunConfig, atMs: number) =>
  entryGuard(guards, config.guards, { atMs, openPositions: 0 })

test('a later version goes on with the loss of the day, until the day ends', () => {
  const config = configBy({ daily_loss_usd: '50', max_loss_usd: '50' })
  const lost = applyGuards(withCash(940n), noonMs, { config, dayEndsMs: dayMs })
  assert.deepEqual([lost.guards.tripped?.guard, lost.guards.trippedToday?.guard], ['max_loss', 'daily_loss'])
  const { run, version } = takenOver(accountOf(lost), {
    terms: { version: 2, config },
    dayEndsMs: noonMs + 1,
    addedMicros: 0n,
  })
  assert.deepEqual([version, run.guards.tripped, blockedBy(run, config, noonMs)], [2, null, 'daily_loss'])
  const later = (atMs: number) => applyGuards(run, atMs, { config, dayEndsMs: 2 * dayMs })
  assert.equal(blockedBy(later(noonMs + 1), config, noonMs + 1), 'daily_loss', 'by another timezone')
  assert.equal(blockedBy(later(dayMs), config, dayMs), null, 'on the next day')
})

test('what was lost before a later version counts on its first day, and money that was added is no gain', () => {
  const config = configBy({ daily_loss_usd: '50' })
  const { run } = takenOver(accountOf(withCash(960n)), {
    terms: { version: 2, config },
    dayEndsMs: dayMs,
    addedMicros: 500n * usd,
  })
  const trippedBy = (loss: bigint) => {
    const account = { ...run.account, cashMicros: run.account.cashMicros - loss * usd }
    return applyGuards({ ...run, account }, noonMs, { config, dayEndsMs: dayMs }).guards.trippedToday?.guard
  }
  assert.deepEqual([trippedBy(9n), trippedBy(10n)], [undefined, 'daily_loss'])
})
