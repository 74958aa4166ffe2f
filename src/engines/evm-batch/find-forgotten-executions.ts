import { balanceChange } from '#kernel/money/balance-changes.ts'
import type { Token } from '#kernel/money/chains.ts'
import type { NamedExecution } from '#kernel/task/execution-id.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import type { ExecutedBatch } from '#upstreams/evm/batch.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type {
  BlocksRead,
  NonceRange,
  SearchOptions,
  SentTransaction,
} from '#upstreams/evm/transactions-by-nonce.ts'
import type { EvmPort } from './evm-chain-parts.ts'
import { nonceKind } from './sponsor-load.ts'

/** Finds batches unknown to the database: those in the sponsors' transactions with nonces above our counters. */

export type FoundExecution = NamedExecution & {
  chainId: string
  account: string
  txHash: string
  balanceChanges: object[]
  executedAt: Date
}
/** A signer's nonces that the chain has used and our counter does not know, and the next of them to examine. */
type SignerProgress = { blocks: BlocksRead; range?: NonceRange; next?: bigint }
/** The progress of a search by signer; a search that was aborted continues from its progress. */
export type EvmProgress = Map<string, SignerProgress>

type FindDeps = {
  db: Queryable
  findSent: (
    chain: EvmPort['chain'],
    signer: string,
    nonces: NonceRange,
    options: SearchOptions,
  ) => Promise<SentTransaction[]>
  batchIn: (input: string) => ExecutedBatch | undefined
  executionOf: (nonce: bigint) => NamedExecution | undefined
  /** The tokens that the gateway names beside those of the chain's list. */
  tokens: readonly Token[]
  /** Returns the units that a batch moved, by the lower-case address of the token. */
  changesOf: (chain: EvmPort['chain'], moved: Moved) => Map<string, bigint>
  nonceAt: (chain: EvmPort['chain'], signer: string, at: Date, options?: SearchOptions) => Promise<bigint>
  store: (executions: readonly FoundExecution[]) => Promise<void>
}

/** The range of a search; `point` is the last moment of which the database has a record. */
export type SearchRange = { point: Date | null; signal: AbortSignal }

/** At most this many receipts are requested at once. */
const pageMax = 50

/** Returns, by signer, the nonces that the chain has used and our counter lacks. Throws if the node does not answer. */
export async function findExecutions(
  deps: FindDeps,
  port: EvmPort,
  { point, signal, progress }: SearchRange & { progress: EvmProgress },
): Promise<Record<string, NonceRange>> {
  const used: Record<string, NonceRange> = {}
  for (const signer of port.sponsor.signers) {
    const done = progress.get(signer) ?? { blocks: { found: [] } }
    progress.set(signer, done)
    const options = { signal, blocks: done.blocks }
    done.range ??= await unknownRange(deps, port, signer, { point, ...options })
    const { from, to } = done.range
    if (from >= to) continue
    used[signer] = done.range
    for (let next = done.next ?? from; next < to; ) {
      const sent = await deps.findSent(port.chain, signer, { from: next, to }, options)
      if (sent.length === 0) throw new Error(`no transaction of ${signer} from nonce ${next} on`)
      for (let at = 0; at < sent.length; at += pageMax) {
        signal.throwIfAborted()
        const page = sent.slice(at, at + pageMax)
        await deps.store(await executionsIn(deps, port, page))
        next = page.at(-1)!.nonce + 1n
        done.next = next
      }
    }
  }
  return used
}

async function unknownRange(
  deps: FindDeps,
  port: EvmPort,
  signer: string,
  search: { point: Date | null } & SearchOptions,
): Promise<NonceRange> {
  const to = await port.chain.transactionCount(signer, 'latest')
  const from =
    (await readCounter(deps.db, port.chain.row.id, signer)) ?? (await startAt(deps, port, signer, search))
  return { from, to }
}

/** Returns the nonce at which the search begins for a sponsor without a counter: the one that it had at `point`. */
export const startAt = (
  { nonceAt }: Pick<FindDeps, 'nonceAt'>,
  { chain }: EvmPort,
  signer: string,
  { point, ...options }: { point: Date | null } & SearchOptions,
): Promise<bigint> =>
  point === null ? chain.transactionCount(signer, 'latest') : nonceAt(chain, signer, point, options)

async function readCounter(db: Queryable, chain: string, signer: string): Promise<bigint | undefined> {
  const [row] = await query<{ next: string | bigint }>(
    db,
    'select next from nonce_sequence where kind = $1 and chain = $2 and signer = $3',
    [nonceKind, chain, signer],
  )
  return row && BigInt(row.next)
}

async function executionsIn(
  { batchIn, executionOf, changesOf, tokens }: FindDeps,
  { chain }: EvmPort,
  sent: readonly SentTransaction[],
): Promise<FoundExecution[]> {
  const { receipts } = await chain.receipts(sent.map(({ hash }) => hash))
  const found: FoundExecution[] = []
  for (const [index, { to: account, input, hash, block }] of sent.entries()) {
    const batch = batchIn(input)
    const receipt = receipts[index]
    const execution = batch && executionOf(batch.nonce)
    // A batch that failed moved nothing, and the account can still execute it once.
    if (!execution || account === null || !receipt?.success) continue
    const { timestampSeconds } = await chain.headAt(block)
    found.push({
      ...execution,
      chainId: chain.row.id,
      account,
      txHash: hash,
      balanceChanges: await balanceChanges(
        chain,
        { changesOf, tokens },
        { receipt, account, calls: batch.calls },
      ),
      executedAt: new Date(timestampSeconds * 1_000),
    })
  }
  return found
}

type Moved = { receipt: Receipt; account: string; calls: ExecutedBatch['calls'] }

/** Returns the balance changes of a found batch. It has no task, so the chain names tokens that are not listed. */
async function balanceChanges(
  chain: EvmPort['chain'],
  { changesOf, tokens }: Pick<FindDeps, 'changesOf' | 'tokens'>,
  moved: Moved,
): Promise<JsonObject[]> {
  const { row } = chain
  const listed = [row.native, ...row.tokens, ...tokens]
  const named = [...changesOf(chain, moved)].map(async ([address, units]) => {
    const token =
      listed.find((each) => each.address.toLowerCase() === address) ?? (await chain.tokenFacts(address))
    return balanceChange(row.id, token ?? { symbol: '', decimals: 0, address }, units)
  })
  return Promise.all(named)
}
