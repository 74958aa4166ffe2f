import { isDeepStrictEqual } from 'node:util'
import type { Effect, JsonObject, TaskView } from '#kernel/task/task.ts'
import type { SignatureReading } from '#upstreams/solana/signature-watcher.ts'
import { attemptOf } from './await-landing.ts'
import { isMovedByOthers } from './other-wallet-changes.ts'
import type { SvmPort } from './svm-port.ts'
import type { Absence, SvmTaskData } from './transaction-plan.ts'
import { type HeldUnits, heldUnits } from './wallet-balances.ts'

/**
 * Whether stored bytes can still land. They cannot once the chain has finalised a block above their last valid
 * one, and nodes at or beyond that block do not know the signature. One node may lag or have lost it, so two
 * look-ups are needed, apart in time, each in the whole history, and neither at a node behind the finalised
 * block.
 *
 * Nodes can lose their history but not their state: the wallet must hold what it held at the signature, or what
 * other transactions alone have made of it.
 */

/** The blocks to wait beyond a transaction's last valid block: forks at the tip are never as deep. */
export const marginBlocks = 32n
const apartMs = 2_000
/** The wallet's balance was read within this many slots of the signature. */
const readingSlots = 64n
/** The least slots in which a blockhash expires: some slots have no block, so 150 blocks take at least as many. */
const validSlots = 150n

type ExpiryContext = { task: TaskView<SvmTaskData>; effect: Effect; port: SvmPort; now: Date }
/**
 * `reading` means that the transaction landed so long ago that only a search of the history shows it.
 * `unprovable` means that other transactions do not explain what the wallet holds, so that it may have landed.
 */
export type ExpiryFinding =
  | { reading: SignatureReading }
  | { absence: Absence }
  | { unprovable: true }
  | { proof: JsonObject }

/** Finds out whether a signed transaction can still land; undefined while it can. */
export async function findExpiry(
  { task, effect, port, now }: ExpiryContext,
  { slot }: SignatureReading,
): Promise<ExpiryFinding | undefined> {
  const { chain } = port
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
  const before = effect.signed.held as HeldUnits[]
  const wallet = { account: String(effect.intent.account), tokens: before.map(({ token }) => token) }
  const held = await heldUnits(chain, wallet, { commitment: 'finalized', minSlot: final.slot })
  const changes = { before, held, spent: spentBy(effect), signedSlot: BigInt(String(effect.signed.slot)) }
  if (!isDeepStrictEqual(held, before) && !(await isOfOthers(port, wallet, { ...changes, signature })))
    return { unprovable: true }
  return {
    proof: {
      last_valid_block_height: String(lastValid),
      finalized_block_height: String(final.height),
      absent_at_slots: [earlier.slot, String(seenSlot)],
    },
  }
}

const spentBy = ({ intent }: Effect): Map<string, bigint> => {
  const spends = Array.isArray(intent.spends) ? (intent.spends as JsonObject[]) : []
  const spent = new Map<string, bigint>()
  for (const { token, amountUnits } of spends)
    spent.set(String(token), (spent.get(String(token)) ?? 0n) + BigInt(String(amountUnits)))
  return spent
}

type Changed = {
  before: readonly HeldUnits[]
  held: readonly HeldUnits[]
  spent: ReadonlyMap<string, bigint>
  signedSlot: bigint
  signature: string
}

async function isOfOthers(
  port: SvmPort,
  { account, tokens }: { account: string; tokens: string[] },
  { signedSlot, signature, ...changed }: Changed,
): Promise<boolean> {
  const fromSlot = signedSlot > readingSlots ? signedSlot - readingSlots : 0n
  const changes = await port.changesSince({ wallet: account, tokens, fromSlot })
  if (!changes || changes.some((each) => each.signature === signature)) return false
  return isMovedByOthers({ ...changed, changes, readBy: signedSlot + readingSlots })
}
