import type { VenueWallet, WalletCall } from '#kernel/money/prediction-actions.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import type { StepResultOf } from '#kernel/task/task.ts'
import { chainShares, moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { type RelayPlan, relayDriver } from './relay-action.ts'
import type { SetupStepName, SetupTaskData } from './setup-task.ts'

/** Moves cash, dollars and shares of a Safe, the wallet of earlier users, to the deposit wallet of the same owner. */

/** One batch moves the shares of so many markets; the next one follows until the Safe is empty. */
const marketsMax = 15

export const safeOf = ({ venue }: Pick<PredmktDeps, 'venue'>, owner: string): VenueWallet | undefined =>
  venue.walletsOf(owner).find(({ kind }) => kind === 'safe')

export const migrationEffect = (deps: PredmktDeps) =>
  createEffect({
    steps: { sign: 'move', confirm: 'moved' },
    driver: relayDriver<SetupTaskData, SetupStepName>(deps, {
      prove: (_task, receipt) => receipt?.success === true,
    }),
    async plan({
      data: { wallet },
      kind,
    }): Promise<RelayPlan<SetupTaskData> | StepResultOf<Partial<SetupTaskData>, SetupStepName>> {
      const safe = safeOf(deps, wallet.owner)
      const calls = safe ? await migrationCalls(deps, safe.wallet, wallet.wallet) : []
      if (!safe || calls.length === 0) return { next: 'check', data: { is_moved: true } }
      const facts = { operation: kind, tokens: [], recipients: [], usdMicros: 0n, exit: true }
      return { wallet: safe, calls, facts }
    },
    settle: () => ({ next: 'move', state: 'settling', data: { polls: 0 } }),
  })

async function migrationCalls(deps: PredmktDeps, from: string, to: string): Promise<WalletCall[]> {
  const { chain } = deps
  if ((await chain.code(from)) === '0x') return []
  const money = moneyOf(deps)
  const tokens = [money.cashToken, ...money.wrappable.map(({ token }) => token)]
  const { tokens: held } = await chain.balances(from, tokens)
  const [cashUnits = 0n, ...dollars] = held.map((units) => units ?? 0n)
  return [
    ...(cashUnits > 0n ? [money.transferCall(to, cashUnits)] : []),
    ...money.wrappable.flatMap(({ token }, index) =>
      (dollars[index] ?? 0n) > 0n ? money.wrapCalls(token, dollars[index]!, to) : [],
    ),
    ...(await shareCalls(deps, from, to)),
  ]
}

async function shareCalls(deps: PredmktDeps, from: string, to: string): Promise<WalletCall[]> {
  const { items } = await deps.venue.positions(from)
  const ids = [...new Set(items.map(({ marketId }) => marketId))].slice(0, marketsMax)
  const markets = await deps.venue.marketsById(ids)
  const calls = await Promise.all(
    [...markets.values()].map(async (market) => {
      const outcomes = market.outcomes.map(({ outcomeId }) => ({ market, outcomeId }))
      const units = await chainShares(deps, from, outcomes)
      const shares = outcomes
        .map(({ outcomeId }, index) => ({ outcomeId, sizeUnits: units[index] ?? 0n }))
        .filter(({ sizeUnits }) => sizeUnits > 0n)
      return shares.length === 0 ? [] : [moneyOf(deps).transferSharesCall(from, to, market, shares)]
    }),
  )
  return calls.flat()
}
