import type { JournalEntry, MinedAt } from './call-journal.ts'
import { hashOf, journalMarkerAddress, markerSlots } from './journal-rotation.ts'
import type { Rpc } from './rpc.ts'

type Hex = `0x${string}`
type Sent = { entry: JournalEntry; hash: Hex; mined: MinedAt | undefined }

const batchMax = 100
/** Block numbers are kept where that takes few empty blocks. */
const emptyBlocksMax = 1_000

/** The first journal file that the state does not contain, and the last write to the state that it contains. */
export const readMarker = async (rpc: Rpc): Promise<{ file: number; set: number }> => {
  const [file, set] = await rpc.batch(
    [markerSlots.file, markerSlots.set].map((slot) => ({
      method: 'eth_getStorageAt',
      params: [journalMarkerAddress, `0x${slot.toString(16)}`, 'latest'],
    })),
  )
  return { file: Number(file), set: Number(set) }
}

/** In the order of their blocks where that is known; the same bytes once, with the last known block. */
const inOrder = (sent: readonly Sent[]): Sent[] => {
  const byHash = new Map<Hex, Sent>()
  for (const each of sent) {
    const before = byHash.get(each.hash)
    if (!before || each.mined) byHash.set(each.hash, each)
  }
  const key = ({ mined, entry }: Sent): [number, number] =>
    mined ? [mined.block, mined.index] : [Number.POSITIVE_INFINITY, entry.n]
  return [...byHash.values()].sort((one, two) => {
    const [[block, index], [otherBlock, otherIndex]] = [key(one), key(two)]
    return block === otherBlock ? index - otherIndex : block - otherBlock
  })
}

const findMissing = async (rpc: Rpc, sent: readonly Sent[]): Promise<Sent[]> => {
  const missing: Sent[] = []
  for (let at = 0; at < sent.length; at += batchMax) {
    const part = sent.slice(at, at + batchMax)
    const receipts = await rpc.batch(
      part.map(({ hash }) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
    )
    missing.push(...part.filter((_each, index) => receipts[index] === null))
  }
  return missing
}

const headOf = async (rpc: Rpc): Promise<{ number: number; atSeconds: number }> => {
  const block = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as Record<string, string>
  return { number: Number(block.number), atSeconds: Number(block.timestamp) }
}

const mineAt = async (rpc: Rpc, atSeconds: number): Promise<void> => {
  // The node's clock may be ahead of that time, and would reject it.
  await rpc.call('evm_setTime', [atSeconds])
  await rpc.call('evm_setNextBlockTimestamp', [atSeconds])
  await rpc.call('evm_mine')
}

const sendOne = async (rpc: Rpc, { entry: { call } }: Sent): Promise<void> => {
  if ('raw' in call) await rpc.call('eth_sendRawTransaction', [call.raw])
  else if ('unsigned' in call) {
    await rpc.call('anvil_impersonateAccount', [call.unsigned.from])
    await rpc.call('eth_sendTransaction', [call.unsigned])
    await rpc.call('anvil_stopImpersonatingAccount', [call.unsigned.from])
  }
}

/** Each block again with its number, its time and its transactions. */
const remine = async (rpc: Rpc, sent: readonly Sent[], onFailure: (error: Error) => void) => {
  for (let at = 0; at < sent.length; ) {
    const block = sent[at]?.mined?.block
    const end = block === undefined ? at + 1 : sent.findLastIndex(({ mined }) => mined?.block === block) + 1
    const group = sent.slice(at, end)
    const head = await headOf(rpc)
    const gap = block === undefined ? 0 : block - head.number - 1
    if (gap <= emptyBlocksMax) for (let left = gap; left > 0; left--) await mineAt(rpc, head.atSeconds)
    for (const each of group) await sendOne(rpc, each).catch(onFailure)
    const { mined, entry } = group[0] as Sent
    await mineAt(rpc, Math.max(head.atSeconds, mined?.atSeconds ?? entry.takenSeconds))
    at = end
  }
}

/**
 * Repeats the calls that the chain accepted after its last save. The node must not mine by itself meanwhile. Returns
 * how many transactions were missing.
 */
export const replay = async (
  rpc: Rpc,
  entries: readonly JournalEntry[],
  onFailure: (error: Error) => void,
): Promise<number> => {
  const { set: lastSet } = await readMarker(rpc)
  let missing = 0
  let batch: Sent[] = []
  const flush = async (): Promise<void> => {
    const resent = await findMissing(rpc, inOrder(batch))
    batch = []
    missing += resent.length
    await remine(rpc, resent, onFailure)
  }
  for (const entry of [...entries].sort((one, two) => one.n - two.n)) {
    const hash = await hashOf(entry.call)
    if (hash) batch.push({ entry, hash, mined: entry.mined })
    else if ('method' in entry.call && entry.n > lastSet) {
      await flush()
      await rpc.call(entry.call.method, entry.call.params as unknown[]).catch(onFailure)
    }
  }
  await flush()
  return missing
}
