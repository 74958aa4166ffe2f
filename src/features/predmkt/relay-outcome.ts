import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { RelayReply, RelayState, VenueRelayer } from '#kernel/money/prediction-setup.ts'
import type { Effect } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { PredmktDeps } from './deps.ts'
import { laterTexts } from './order-submission.ts'
import { bodyOfEffect } from './signed-effect.ts'

/** What became of an action that the relayer was sent, by its record and by the chain. */

type RelayedTask = { data: { relay_id?: string | null; wallet: VenueWallet } }
/** How long after the deadline of its signature an action that nobody knows is dropped. */
const dropAfterMs = 60_000

export function relayerOf({ venue }: Pick<PredmktDeps, 'venue'>): VenueRelayer {
  const relayer = venue.setup?.relayer
  if (relayer) return relayer
  throw new Fault(
    'unavailable',
    'The operator has no key for the relayer of the venue, so wallets cannot act there',
  )
}

export type Found =
  /** With `hasRun` the chain shows that the wallet's nonce is used, and no record names a transaction. */
  | { type: 'pending'; relayId?: string; hasRun?: boolean }
  | { type: 'later'; until: Date; message: string }
  | { type: 'rateLimited' }
  | { type: 'again' }
  | { type: 'rejected'; code: string; message: string }
  | { type: 'landed'; txHash: string | null; receipt: Receipt | null; relayId: string }

/** Looks an action up, or sends its stored bytes if nobody can know them yet. */
export async function outcomeOf(
  deps: Pick<PredmktDeps, 'venue' | 'chain'>,
  task: RelayedTask,
  { effect, now }: { effect: Effect; now: Date },
): Promise<Found> {
  const relayer = relayerOf(deps)
  const { relay_id: relayId, wallet } = task.data
  if (relayId != null) return stateFound(deps, { effect, now, relayId, state: await relayer.state(relayId) })
  const known = effect.neverSent === true ? undefined : await foundAmong(relayer, wallet, effect)
  if (known) return stateFound(deps, { effect, now, relayId: known.relayId, state: known })
  if (effect.validUntil !== null && effect.validUntil <= now) {
    if (await isNonceUsed(deps, effect)) return { type: 'pending', hasRun: true }
    // A crash may have hidden a send, so the bytes are dropped only once they can no longer run.
    return { type: isDead(effect, now) ? 'again' : 'pending' }
  }
  const reply = replyFound(await relayer.submit(bodyOfEffect(effect)), now)
  const isRefusal = reply.type === 'again' || reply.type === 'rejected'
  // The refusal of a repetition proves nothing about bytes that have left before: they may be about to run.
  const mayHaveLeft = effect.neverSent !== true && batchOf(effect) !== undefined
  return isRefusal && mayHaveLeft ? { type: 'pending' } : reply
}

/** A Safe and the creation of a wallet sign no deadline: what did not run for so long is signed again. */
const undatedMs = 3_600_000

const isDead = ({ validUntil, at }: Effect, now: Date): boolean =>
  validUntil === null
    ? at.getTime() + undatedMs < now.getTime()
    : validUntil.getTime() + dropAfterMs < now.getTime()

/** The wallet and the nonce of a batch; undefined for the creation of a wallet, which has none. */
function batchOf({ intent }: Effect): { wallet: string; nonce: bigint } | undefined {
  const { wallet, safe, nonce } = intent.action as { wallet?: string; safe?: string; nonce?: string }
  const account = wallet ?? safe
  return account === undefined || nonce === undefined ? undefined : { wallet: account, nonce: BigInt(nonce) }
}

type ChainDeps = Pick<PredmktDeps, 'venue' | 'chain'>

/** The nonce of the wallet's next batch; null while the wallet has no code. */
export async function nonceOnChain({ venue, chain }: ChainDeps, wallet: string): Promise<bigint | null> {
  const { results } = await chain.views([venue.setup!.nonceCall(wallet)])
  const [read] = results
  return read?.success && read.data.length === 66 ? BigInt(read.data) : null
}

/** Whether the chain shows that a batch with this nonce has run; only the gateway signs for the wallet. */
async function isNonceUsed(deps: ChainDeps, effect: Effect): Promise<boolean> {
  const batch = batchOf(effect)
  const next = batch && (await nonceOnChain(deps, batch.wallet))
  return next != null && next > batch!.nonce
}

/**
 * Finds the action among the latest ones of its owner: by its nonce and signature, or as the one that creates the
 * wallet. One that failed before it was sent can be an equal action of an earlier task, so that the bytes are sent
 * again: their nonce lets them run once.
 */
async function foundAmong(
  relayer: VenueRelayer,
  { owner }: VenueWallet,
  effect: Effect,
): Promise<RelayState | undefined> {
  const { nonce, signature } = JSON.parse(bodyOfEffect(effect)) as { nonce?: string; signature?: string }
  const sought = nonce === undefined ? null : BigInt(nonce)
  const recent = await relayer.recent(owner)
  return recent.find(
    (each) =>
      each.nonce === sought &&
      (each.signature === null || each.signature === signature) &&
      (each.state !== 'failed' || each.txHash !== null),
  )
}

function replyFound(reply: RelayReply, now: Date): Found {
  switch (reply.type) {
    case 'accepted':
      return { type: 'pending', relayId: reply.relayId }
    case 'rejected':
      if (reply.reason === 'nonce_stale' || reply.reason === 'expired') return { type: 'again' }
      return { type: 'rejected', code: reply.reason, message: reply.message }
    case 'later': {
      if (reply.retryAfterMs === null) return { type: 'rateLimited' }
      const message = `${laterTexts[reply.reason]} (${reply.message})`
      return { type: 'later', until: later(now, reply.retryAfterMs), message }
    }
    case 'not_sent':
      return { type: 'rateLimited' }
    case 'unknown':
      return { type: 'pending' }
  }
}

type Stated = { effect: Effect; now: Date; relayId: string; state: RelayState | undefined }

/** What the relayer says of an action counts only as far as the chain does not contradict it. */
async function stateFound(deps: ChainDeps, { effect, now, relayId, state }: Stated): Promise<Found> {
  const pending = { type: 'pending', relayId } as const
  // What the relayer has accepted and then lost is dropped once it can no longer run. Bytes without a deadline may run
  // even then: those that replace them have the same nonce, by which one of the two runs, or create the same wallet.
  if (!state || state.state === 'pending') {
    if (!isDead(effect, now)) return pending
    return (await isNonceUsed(deps, effect)) ? { ...pending, hasRun: true } : { type: 'again' }
  }
  const { txHash, error } = state
  const receipt = txHash ? ((await deps.chain.receipts([txHash])).receipts[0] ?? null) : null
  const isUsed = await isNonceUsed(deps, effect)
  const isBatch = batchOf(effect) !== undefined
  if (state.state === 'failed' && !receipt?.success) {
    // A transaction that no node shows may still arrive, until the signature has ended.
    const mayArrive = txHash !== null && receipt === null && isBatch && !isDead(effect, now)
    if (isUsed) return { ...pending, hasRun: true }
    if (mayArrive) return pending
    return {
      type: 'rejected',
      code: 'relay_failed',
      message: error ?? 'The relayer could not run the action',
    }
  }
  const isShown = (txHash === null || receipt !== null) && (isUsed || !isBatch)
  return isShown ? { type: 'landed', txHash, receipt, relayId } : pending
}
