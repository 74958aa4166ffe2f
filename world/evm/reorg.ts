import type { Resend } from './recorder.ts'
import type { Rpc } from './rpc.ts'
import { pendingIn, resumeAutomine, type StateLock } from './state-lock.ts'

type Block = { transactions: string[] }

type Options = {
  rpc: Rpc
  automine: boolean
  blockSeconds: number
  depth: number
  vanishedMs: number
  /** Receives the transactions before they are removed. */
  recordResend: (raws: readonly `0x${string}`[]) => Promise<Resend>
  nowMs: () => number
  /** Saves the chain without the removed blocks, because an earlier state has them. */
  save: () => Promise<unknown>
  /** No save of the chain comes between. */
  runShared: StateLock['runShared']
}

export const miningModeCall = (
  { automine }: { automine: boolean },
  seconds: number,
  { isMining }: { isMining: boolean },
) =>
  automine
    ? { method: 'evm_setAutomine', params: [isMining] }
    : { method: 'evm_setIntervalMining', params: [isMining ? seconds : 0] }

const rawOf = async (rpc: Rpc, depth: number): Promise<`0x${string}`[]> => {
  const head = Number(await rpc.call('eth_blockNumber'))
  const numbers = Array.from({ length: depth }, (_, index) => head - depth + 1 + index)
  const blocks = (await rpc.batch(
    numbers.map((number) => ({
      method: 'eth_getBlockByNumber',
      params: [`0x${number.toString(16)}`, false],
    })),
  )) as (Block | null)[]
  const hashes = blocks.flatMap((block) => block?.transactions ?? [])
  return (await rpc.batch(
    hashes.map((hash) => ({ method: 'eth_getRawTransactionByHash', params: [hash] })),
  )) as `0x${string}`[]
}

type Pool = { pending: Record<string, Record<string, { hash: string }>> }

/**
 * Takes the transactions that wait for a block out of the mempool. The node would try them before the transactions of
 * the removed blocks, and drop them for a nonce that is too high.
 */
const takePending = async (rpc: Rpc): Promise<`0x${string}`[]> => {
  const { pending } = (await rpc.call('txpool_content')) as Pool
  const hashes = Object.values(pending).flatMap((byNonce) =>
    Object.entries(byNonce)
      .toSorted(([one], [other]) => Number(one) - Number(other))
      .map(([, { hash }]) => hash),
  )
  const callEach = (method: string) => rpc.batch(hashes.map((hash) => ({ method, params: [hash] })))
  const raws = (await callEach('eth_getRawTransactionByHash')) as `0x${string}`[]
  await callEach('anvil_dropTransaction')
  return raws
}

const pausesMax = 20
const pauseMs = 5

/**
 * The node may still be mining what it took before the pause. Waits up to 100 ms; a transaction that came after the
 * pause stays in the pool.
 */
const waitForPendingBlock = async (rpc: Rpc): Promise<void> => {
  for (let pauses = 0; pauses < pausesMax && (await pendingIn(rpc)) > 0; pauses++)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
}

/** Accepts that a client has sent the same bytes again by now, or that their block was not removed. */
const resend = async (rpc: Rpc, raw: `0x${string}`): Promise<void> => {
  try {
    await rpc.call('eth_sendRawTransaction', [raw])
  } catch (error) {
    if (!/already imported|nonce too low/i.test((error as Error).message)) throw error
  }
}

/**
 * Removes the newest blocks as a public chain does: their transactions return to the mempool, have no receipt for a
 * while, and are mined again in other blocks. Mining is paused meanwhile, so that no block comes between reading the
 * blocks and removing them. Returns how many transactions were removed.
 */
export const reorganise = async (options: Options): Promise<number> => {
  const { rpc, automine, blockSeconds, depth, vanishedMs, nowMs, recordResend, save, runShared } = options
  /** What the node refuses until the transactions before it are in a block: a payment with money that one of them brings. */
  const refused: `0x${string}`[] = []
  let recorded: Resend | undefined
  const dropBlocks = async (): Promise<number> => {
    await rpc.batch([miningModeCall({ automine }, blockSeconds, { isMining: false })])
    if (automine) await waitForPendingBlock(rpc)
    const raws = await rawOf(rpc, depth)
    if (raws.length === 0) return 0
    recorded = await recordResend(raws)
    await rpc.call('anvil_reorg', [depth, []])
    // The node has set its clock back to the newest block that stayed.
    await rpc.call('evm_setTime', [Math.floor(nowMs() / 1000)])
    try {
      const waiting = await takePending(rpc)
      for (const raw of [...raws, ...waiting]) await resend(rpc, raw).catch(() => refused.push(raw))
    } finally {
      recorded.removed()
    }
    return raws.length
  }
  try {
    const count = await runShared(dropBlocks)
    // Saved before a block is mined again: a client that has seen that block never finds the removed one after a crash.
    if (count > 0) await Promise.all([save(), new Promise((resolve) => setTimeout(resolve, vanishedMs))])
    return count
  } finally {
    await runShared(async () => {
      try {
        await (automine ? resumeAutomine(rpc) : rpc.call('evm_mine'))
        for (const raw of refused) await resend(rpc, raw).catch(() => {})
      } finally {
        recorded?.ended()
        if (!automine) await rpc.batch([miningModeCall({ automine }, blockSeconds, { isMining: true })])
      }
    })
  }
}
