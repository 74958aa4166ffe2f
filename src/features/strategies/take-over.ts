import type { Tx } from '#kernel/task/task.ts'
import { type GuardState, openGuards } from '#market/strategies/guards.ts'
import { equityOf } from '#market/strategies/strategy-run.ts'
import type { StrategyAccount } from './account-store.ts'
import type { StrategyTerms } from './mode-driver.ts'
import { readInitialMicros } from './terms.ts'

/** Lets a later version of a strategy take its account over. */

type Taking = {
  terms: Pick<StrategyTerms, 'version' | 'config'>
  /** The end of the local day by the version that takes over. */
  dayEndsMs: number
}

export async function takeOver(
  tx: Tx,
  account: StrategyAccount,
  { terms, dayEndsMs }: Taking & { terms: StrategyTerms },
): Promise<StrategyAccount> {
  const { strategyId, version, mode, initialMicros } = terms
  if (account.version >= version) return account
  const before = await readInitialMicros(tx, { strategyId, version: account.version, mode })
  return takenOver(account, { terms, dayEndsMs, addedMicros: initialMicros - before })
}

/**
 * The guards of the later version begin anew with what there is, and what an account begins with changes by what its
 * user has changed. The entries and the loss of a day are those of all versions of that day.
 */
export function takenOver(
  account: StrategyAccount,
  { terms: { version, config }, dayEndsMs, addedMicros }: Taking & { addedMicros: bigint },
): StrategyAccount {
  const { run } = account
  const cashMicros = run.account.cashMicros + addedMicros
  const changed = { ...run, account: { ...run.account, cashMicros } }
  const { entriesToday, lastEntryMs, dayStartMicros, trippedToday } = run.guards
  const guards: GuardState = {
    ...openGuards(equityOf(changed, config), dayEndsMs),
    // Another timezone ends a day no earlier that was lost.
    dayEndsMs: trippedToday ? Math.max(dayEndsMs, run.guards.dayEndsMs) : dayEndsMs,
    entriesToday,
    lastEntryMs,
    dayStartMicros: dayStartMicros + addedMicros,
    trippedToday,
  }
  return { ...account, version, run: { ...changed, guards } }
}
