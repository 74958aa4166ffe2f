import type { Effect, JsonObject, TaskView } from '#kernel/task.ts'
import type { SignatureReading } from '#upstreams/solana/signature-watcher.ts'
import { attemptOf } from './landing.ts'
import type { SvmPort } from './svm-port.ts'
import type { Absence, SvmTaskData } from './transaction-rules.ts'

/**
 * Whether stored bytes can still land. They cannot, once the chain has finalised a block above their last valid one, and
 * nodes at or beyond that block do not know the signature. One node may lag or may have lost it: two looks are needed,
 * apart in time, each with the history searched, and neither at a node that is behind the finalised block.
 */

/** Blocks beyond the last valid one: more than forks at the tip are deep. */
const marginBlocks = 32n
const apartMs = 2_000
/** Slots without a block are frequent, so a height is reached in more slots than blocks. */
const validSlots = 150n

type ExpiryContext = { task: TaskView<SvmTaskData>; effect: Effect; port: SvmPort; now: Date }
/** `reading`: it landed, so long ago that only a search of the history shows it. */
export type ExpiryFinding = { reading: SignatureReading } | { absence: Absence } | { proof: JsonObject }

/** Undefined while it may land. */
export async function findExpiry(
  { task, effect, port: { chain }, now }: ExpiryContext,
  { slot }: SignatureReading,
): Promise<ExpiryFinding | undefined> {
  const { externalId: signature } = attemptOf(effect)
  const lastValid = BigInt(String(effect.intent.lastValidBlockHeight))
  if (slot <= BigInt(String(effect.signed.slot)) + validSlots) return undefined
  const final = await chain.height('finalized')
  const { slot: seenSlot, statuses } = await chain.statuses([signature], { searchHistory: true })
  if (statuses[0]) return { reading: { slot: seenSlot, status: statuses[0] } }
  if (final.height <= lastValid + marginBlocks || seenSlot < final.slot) return undefined
  if (await chain.transaction(signature, 'confirmed')) return undefined
  const earlier = task.data.absence
  const absence: Absence = { signature, slot: String(seenSlot), at_ms: now.getTime() }
  if (earlier?.signature !== signature) return { absence }
  const isApart = now.getTime() - earlier.at_ms >= apartMs
  if (!isApart) return { absence: earlier }
  return {
    proof: {
      last_valid_block_height: String(lastValid),
      finalized_block_height: String(final.height),
      absent_at_slots: [earlier.slot, String(seenSlot)],
    },
  }
}
