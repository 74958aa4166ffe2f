import { setTimeout as pause } from 'node:timers/promises'
import type { NamedExecution } from '#kernel/task/execution-id.ts'
import type { sentExecutions } from '#upstreams/solana/execution-reference.ts'
import type { LandedTransaction } from '#upstreams/solana/solana.ts'
import { marginBlocks } from './expiry.ts'
import type { SvmPort } from './svm-port.ts'

/**
 * Finds executions of users' wallets on Solana that the database does not know. Solana has no nonce that would show
 * what is missing, so everything that the sponsors have sent since a given time is examined, after a wait until no
 * older transaction can still land.
 */

type FoundExecution = NamedExecution & {
  chainId: string
  account: string
  txHash: string
  balanceChanges: object[]
  executedAt: Date
}
/** The progress of a search, from which a search that was aborted continues. */
export type SvmProgress = {
  landed: Map<string, LandedTransaction>
  /** The block height when the search began. Nothing was signed after it, because the hold of money had begun before. */
  beganAt?: bigint
  isPast?: boolean
}
type SearchedPort = {
  chain: Pick<SvmPort['chain'], 'row' | 'height' | 'history' | 'transaction'>
  sponsor: Pick<SvmPort['sponsor'], 'signers'>
}
type Range = { since: Date; signal: AbortSignal; progress: SvmProgress; everyMs?: number }

const everyMsDefault = 1_000
/** A blockhash is valid for 150 blocks. */
const voidAfterBlocks = 150n + marginBlocks

type FindDeps = {
  sent: typeof sentExecutions
  store: (executions: readonly FoundExecution[]) => Promise<void>
}

export async function findSvmExecutions(
  { sent, store }: FindDeps,
  { chain, sponsor }: SearchedPort,
  range: Range,
): Promise<void> {
  await untilVoid(chain, range)
  const { since, signal } = range
  for (const signer of sponsor.signers) {
    const found = await sent(keeping(chain, range.progress), signer, { since, signal })
    const executions = found.map(({ signature, at, ...execution }) => ({
      ...execution,
      chainId: chain.row.id,
      txHash: signature,
      balanceChanges: [],
      executedAt: at,
    }))
    await store(executions)
  }
}

/** Waits until no transaction of before the search can land: an instance that died may have sent one late. */
async function untilVoid(
  chain: SearchedPort['chain'],
  { signal, progress, everyMs = everyMsDefault }: Range,
): Promise<void> {
  // A local chain executes a transaction when it receives it, so there is nothing to wait for.
  if (chain.row.finality !== 'finalized') return
  progress.beganAt ??= (await chain.height('confirmed')).height
  const last = progress.beganAt + voidAfterBlocks
  while (!progress.isPast) {
    progress.isPast = (await chain.height('finalized')).height > last
    if (!progress.isPast) await pause(everyMs, undefined, { signal })
  }
}

const keeping = (chain: SearchedPort['chain'], { landed }: SvmProgress): SearchedPort['chain'] => ({
  ...chain,
  async transaction(signature, commitment) {
    const known = landed.get(signature)
    if (known) return known
    const found = await chain.transaction(signature, commitment)
    if (found) landed.set(signature, found)
    return found
  },
})
