import type { NamedExecution } from '#kernel/execution-id.ts'
import { type Queryable, query } from '#store/query.ts'
import type { ExecutedBatch } from '#upstreams/evm/batch.ts'
import type { NonceRange, SentTransaction } from '#upstreams/evm/sent-transactions.ts'
import type { EvmPort } from './evm-port.ts'
import { nonceKind } from './sponsor-load.ts'
import { balanceChangesOf } from './tx-views.ts'

/**
 * What the accounts of users executed on a chain without the database knowing it: the batches in the transactions of the
 * sponsors whose nonces are above our counters.
 */

export type FoundExecution = NamedExecution & {
  chainId: string
  account: string
  txHash: string
  balanceChanges: object[]
  executedAt: Date
}
/** `used`: by signer, the nonces that the chain has used and our counter does not know. */
export type ChainFindings = { executions: FoundExecution[]; used: Record<string, NonceRange> }

type FindDeps = {
  db: Queryable
  findSent: (
    chain: EvmPort['chain'],
    signer: string,
    nonces: NonceRange,
    signal: AbortSignal,
  ) => Promise<SentTransaction[]>
  batchIn: (input: string) => ExecutedBatch | undefined
  executionOf: (nonce: bigint) => NamedExecution | undefined
  nonceAt: (chain: EvmPort['chain'], signer: string, at: Date, signal?: AbortSignal) => Promise<bigint>
}

/** `point`: the last moment that the database knows. */
export type SearchRange = { point: Date | null; signal: AbortSignal }

/** Throws where the node does not answer, or has not the state of that time. */
export async function findExecutions(
  deps: FindDeps,
  port: EvmPort,
  { point, signal }: SearchRange,
): Promise<ChainFindings> {
  const { chain, sponsor } = port
  const executions: FoundExecution[] = []
  const used: Record<string, NonceRange> = {}
  for (const signer of sponsor.signers) {
    const mined = await chain.transactionCount(signer, 'latest')
    const counter =
      (await readCounter(deps.db, chain.row.id, signer)) ??
      (await startAt(deps, port, signer, { point, signal }))
    if (mined <= counter) continue
    used[signer] = { from: counter, to: mined }
    for (let from = counter; from < mined; ) {
      const sent = await deps.findSent(chain, signer, { from, to: mined }, signal)
      const last = sent.at(-1)
      if (!last) throw new Error(`no transaction of ${signer} from nonce ${from} on`)
      executions.push(...(await executionsIn(deps, port, sent)))
      from = last.nonce + 1n
    }
  }
  return { executions, used }
}

/** A sponsor that had sent nothing at that moment has no counter. */
export const startAt = (
  { nonceAt }: Pick<FindDeps, 'nonceAt'>,
  { chain }: EvmPort,
  signer: string,
  { point, signal }: Omit<SearchRange, 'signal'> & { signal?: AbortSignal },
): Promise<bigint> =>
  point === null ? chain.transactionCount(signer, 'latest') : nonceAt(chain, signer, point, signal)

async function readCounter(db: Queryable, chain: string, signer: string): Promise<bigint | undefined> {
  const [row] = await query<{ next: string | bigint }>(
    db,
    'select next from nonce_sequence where kind = $1 and chain = $2 and signer = $3',
    [nonceKind, chain, signer],
  )
  return row && BigInt(row.next)
}

async function executionsIn(
  { batchIn, executionOf }: FindDeps,
  { chain }: EvmPort,
  sent: readonly SentTransaction[],
): Promise<FoundExecution[]> {
  const { receipts } = await chain.receipts(sent.map(({ hash }) => hash))
  const found: FoundExecution[] = []
  for (const [index, { to: account, input, hash, block }] of sent.entries()) {
    const batch = batchIn(input)
    const receipt = receipts[index]
    const execution = batch && executionOf(batch.nonce)
    // One that failed moved nothing: the account still runs its batch once.
    if (!execution || account === null || !receipt?.success) continue
    const { timestampSeconds } = await chain.headAt(block)
    found.push({
      ...execution,
      chainId: chain.row.id,
      account,
      txHash: hash,
      balanceChanges: balanceChangesOf(chain, receipt, account, []),
      executedAt: new Date(timestampSeconds * 1_000),
    })
  }
  return found
}
