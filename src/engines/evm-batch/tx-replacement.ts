import type { StepResult } from '#kernel/task.ts'
import {
  type ChainState,
  type ConfirmContext,
  finalBlockOf,
  newestOf,
  readChainState,
} from './chain-state.ts'
import { transactionsOf } from './tx-views.ts'

/** A further transaction for a batch that the first one did not bring to the chain. */

/** So often is one batch carried under a new number; then its deadline decides. */
const attemptsMax = 60

/**
 * Other bytes of the same signer took the number: the same batch goes out under the next one. The account executes it
 * at most once whatever carries it, so even a proof that turns out wrong moves nothing twice.
 */
export async function reassignNonce(
  context: ConfirmContext,
  chainState: ChainState,
): Promise<StepResult | undefined> {
  const { task, effect, port, nonces } = context
  const { chain, sponsor } = port
  const { raw, nonce, nonceSequence } = newestOf(effect)
  const { account, deadlineSeconds } = effect.intent.batch as { account: string; deadlineSeconds: number }
  const finalBlock = finalBlockOf(port, chainState.head)
  const isLate = chainState.head.timestampSeconds > deadlineSeconds || effect.txAttempts.length >= attemptsMax
  if (isLate || finalBlock < 0n) return undefined
  if ((await chain.transactionCount(nonceSequence.signer, finalBlock)) <= nonce) return undefined
  const [{ times }, latestState, latest, fees] = await Promise.all([
    chain.executed(account, task.id, finalBlock),
    readChainState(effect, chain),
    chain.transactionCount(nonceSequence.signer, 'latest'),
    sponsor.fees(),
  ])
  if (times > 0n || latestState.mined) return undefined
  return {
    replace: {
      effectId: effect.id,
      nonceSequence,
      build: async (tx) =>
        sponsor.reassignNonce(raw, nonceSequence.signer, {
          nonce: await nonces.take(tx, nonceSequence, latest),
          fees,
        }),
    },
    next: 'confirm',
    state: 'submitted',
    data: { transactions: transactionsOf(context, chainState, 'pending') },
  }
}

/** Only the first open number of a lane is replaced: those behind it wait for it, not for a higher fee. */
export async function replaceStuck(
  context: ConfirmContext,
  chainState: ChainState,
): Promise<StepResult | undefined> {
  // A node that takes nothing is not convinced by a higher fee.
  if (chainState.outcomeUnknown) return undefined
  const { effect, port, now } = context
  const { chain, sponsor } = port
  const newest = newestOf(effect)
  if (now.getTime() - newest.at.getTime() < chain.row.stuckAfterMs) return undefined
  const mined = await chain.transactionCount(newest.nonceSequence.signer, 'latest')
  if (mined !== newest.nonce) return undefined
  const replacement = await sponsor.replacementOf(newest.raw)
  if (!replacement) return undefined
  return {
    replace: {
      effectId: effect.id,
      nonceSequence: newest.nonceSequence,
      build: () => sponsor.replace(newest.raw, newest.nonceSequence.signer, replacement),
    },
    next: 'confirm',
    state: 'submitted',
    data: { transactions: transactionsOf(context, chainState, 'pending') },
  }
}
