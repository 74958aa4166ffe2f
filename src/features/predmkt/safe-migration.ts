import type { VenueWallet, WalletCall } from '#kernel/money/prediction-actions.ts'
import type { Shares } from '#kernel/money/prediction-setup.ts'
import type { VenuePosition } from '#kernel/money/prediction-venue.ts'
import { createEffect } from '#kernel/task/effect-steps.ts'
import type { StepResultOf } from '#kernel/task/task.ts'
import { assertBlock, cashSymbol, chainShares, moneyOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { readPages } from './read-pages.ts'
import { type RelayPlan, relayDriver } from './relay-action.ts'
import type { SetupStepName, SetupTaskData } from './setup-task.ts'

/** Moves cash, dollars and shares of a Safe, the wallet of earlier users, to the deposit wallet of the same owner. */

/** One batch moves the shares of so many markets; the next one follows until the Safe is empty. */
const marketsMax = 15
/** So many pages of the venue's list of positions are read; strangers can send shares to any wallet. */
const pagesMax = 40
/** Fewer shares than this stay where they are: the venue takes sales of whole hundredths of a share. */
const dustUnits = 10_000n
const marketsAtOnce = 200
/** A batch that ran and moved nothing is not repeated for ever. */
const batchesMax = 100

export const safeOf = ({ venue }: Pick<PredmktDeps, 'venue'>, owner: string): VenueWallet | undefined =>
  venue.walletsOf(owner).find(({ kind }) => kind === 'safe')

export const migrationEffect = (deps: PredmktDeps) =>
  createEffect({
    steps: { sign: 'move', confirm: 'moved' },
    driver: relayDriver<SetupTaskData, SetupStepName>(deps, {
      prove: (_task, receipt) => receipt?.success === true,
    }),
    async plan({
      data: { wallet, batches = 0, moved_block: movedBlock },
      kind,
    }): Promise<RelayPlan<SetupTaskData> | StepResultOf<Partial<SetupTaskData>, SetupStepName>> {
      const safe = safeOf(deps, wallet.owner)
      const minBlock = BigInt(movedBlock ?? 0)
      const { calls, left } = safe
        ? await migrationCalls(deps, { from: safe.wallet, to: wallet.wallet, minBlock })
        : nothing
      if (!safe || calls.length === 0 || batches >= batchesMax)
        return { next: 'check', data: { is_moved: true, left } }
      const facts = { operation: kind, tokens: [], recipients: [], usdMicros: 0n, exit: true }
      return { wallet: safe, calls, facts, data: { batches: batches + 1 } }
    },
    settle: (_task, { receipt }) => ({
      next: 'move',
      state: 'settling',
      data: { polls: 0, moved_block: String(receipt!.block) },
    }),
  })

/** `left` names what stays in the Safe, and why. */
type Migration = { calls: WalletCall[]; left: string[] }
const nothing: Migration = { calls: [], left: [] }
/** A node that does not show the latest move yet would have it made again. */
type Wallets = { from: string; to: string; minBlock: bigint }

async function migrationCalls(deps: PredmktDeps, wallets: Wallets): Promise<Migration> {
  if ((await deps.chain.code(wallets.from)) === '0x') return nothing
  const parts = await Promise.all([dollarCalls(deps, wallets), shareCalls(deps, wallets)])
  return { calls: parts.flatMap(({ calls }) => calls), left: parts.flatMap(({ left }) => left) }
}

/** One call that cannot run would make the whole batch fail. */
const canRun = async ({ chain }: PredmktDeps, from: string, calls: readonly WalletCall[]): Promise<boolean> =>
  (await chain.simulate(from, calls)).ok

async function dollarCalls(deps: PredmktDeps, { from, to, minBlock }: Wallets): Promise<Migration> {
  const { cashToken, wrappable, ...money } = moneyOf(deps)
  const asked = [cashToken, ...wrappable.map(({ token }) => token)]
  const { head, tokens } = await deps.chain.balances(from, asked)
  assertBlock(head, minBlock)
  const [cashUnits = 0n, ...dollars] = tokens.map((units) => units ?? 0n)
  const moves = [
    { symbol: cashSymbol, units: cashUnits, calls: () => [money.transferCall(to, cashUnits)] },
    ...wrappable.map(({ symbol, token }, index) => {
      const units = dollars[index] ?? 0n
      return { symbol, units, calls: () => money.wrapCalls(token, units, to) }
    }),
  ]
  const held = moves.filter(({ units }) => units > 0n)
  const runs = await Promise.all(held.map(({ calls }) => canRun(deps, from, calls())))
  return {
    calls: held.flatMap(({ calls }, index) => (runs[index] ? calls() : [])),
    left: held.flatMap(({ symbol }, index) => (runs[index] ? [] : [`${symbol}, which does not move now`])),
  }
}

/** The outcomes of which the wallet has shares by the venue's list, without dust. */
async function listedOutcomes({ venue }: PredmktDeps, wallet: string) {
  const listed = new Map<string, Pick<VenuePosition, 'marketId' | 'outcomeId'> & { protocol: string }>()
  let dust = 0
  const { items, isWhole } = await readPages((cursor) => venue.positions(wallet, cursor), pagesMax)
  for (const { marketId, outcomeId, sizeUnits } of items) {
    const protocol = venue.protocolOf(outcomeId)
    if (sizeUnits < dustUnits || protocol === undefined) dust += 1
    else listed.set(outcomeId, { marketId, outcomeId, protocol })
  }
  return { outcomes: [...listed.values()], dust, isWhole }
}

/** The shares of each market by the chain. The list lags behind it, so that what has moved is not counted again. */
async function* heldShares(
  deps: PredmktDeps,
  { from: wallet, minBlock }: Wallets,
  outcomes: Awaited<ReturnType<typeof listedOutcomes>>['outcomes'],
): AsyncGenerator<[string, Shares[]]> {
  const byMarket = [...Map.groupBy(outcomes, ({ marketId }) => marketId)]
  for (let at = 0; at < byMarket.length; at += marketsAtOnce) {
    const some = byMarket.slice(at, at + marketsAtOnce)
    const asked = some.flatMap(([, group]) => group)
    const units = await chainShares(
      deps,
      wallet,
      asked.map(({ protocol, outcomeId }) => ({ market: { protocol }, outcomeId })),
      minBlock,
    )
    const held = asked
      .map(({ marketId, outcomeId }, index) => ({ marketId, outcomeId, sizeUnits: units[index] ?? 0n }))
      .filter(({ sizeUnits }) => sizeUnits >= dustUnits)
    yield* Map.groupBy(held, ({ marketId }) => marketId)
  }
}

async function shareCalls(deps: PredmktDeps, wallets: Wallets): Promise<Migration> {
  const { from, to } = wallets
  const { outcomes, dust, isWhole } = await listedOutcomes(deps, from)
  const calls: WalletCall[] = []
  let stuck = 0
  for await (const [marketId, shares] of heldShares(deps, wallets, outcomes)) {
    if (calls.length === marketsMax) break
    const market = await deps.venue.market({ marketId })
    const call = market && moneyOf(deps).transferSharesCall(from, to, market, shares)
    if (call && (await canRun(deps, from, [call]))) calls.push(call)
    else stuck += 1
  }
  return {
    calls,
    left: [
      ...(dust > 0 ? [`shares of ${dust} outcomes, less than 0.01 of each`] : []),
      ...(stuck > 0 ? [`shares of ${stuck} markets, which do not move now`] : []),
      ...(isWhole ? [] : ['shares that the venue lists too late to be read']),
    ],
  }
}
