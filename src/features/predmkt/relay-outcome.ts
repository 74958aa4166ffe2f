import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { RelayReply, RelayState, VenueRelayer } from '#kernel/money/prediction-setup.ts'
import type { Effect } from '#kernel/task/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { PredmktDeps } from './deps.ts'
import { laterTexts } from './order-steps.ts'
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
  | { type: 'pending'; relayId?: string }
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
  if (relayId != null) return stateFound(deps, await relayer.state(relayId), relayId)
  const known = effect.neverSent === true ? undefined : await foundAmong(relayer, wallet, effect)
  if (known) return stateFound(deps, known, known.relayId)
  const isVoid = effect.validUntil !== null && effect.validUntil <= now
  if (isVoid) {
    // A crash may have hidden a send, so the bytes are dropped only once they can no longer run.
    const isDead = effect.validUntil!.getTime() + dropAfterMs < now.getTime()
    return isDead ? { type: 'again' } : { type: 'pending' }
  }
  return replyFound(await relayer.submit(bodyOfEffect(effect)), now)
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
      // Another action has used the nonce, so that these bytes can never run.
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

async function stateFound(
  { chain }: Pick<PredmktDeps, 'chain'>,
  state: RelayState | undefined,
  relayId: string,
): Promise<Found> {
  if (!state) return { type: 'pending', relayId }
  if (state.state === 'pending') return { type: 'pending', relayId }
  const receipt = state.txHash ? ((await chain.receipts([state.txHash])).receipts[0] ?? null) : null
  // A transaction that landed decides, whatever the relayer says of it.
  if (state.state === 'failed' && (receipt === null || !receipt.success))
    return {
      type: 'rejected',
      code: 'relay_failed',
      message: state.error ?? 'The relayer could not run the action',
    }
  if (state.txHash && receipt === null) return { type: 'pending', relayId }
  return { type: 'landed', txHash: state.txHash, receipt, relayId }
}
