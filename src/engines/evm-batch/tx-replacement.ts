import type { Replacement } from '#upstreams/evm/fees.ts'
import {
  type ChainState,
  type ConfirmContext,
  finalBlockOf,
  newestOf,
  readChainState,
  sequenceOf,
} from './await-finality.ts'
import type { BatchStepResult } from './batch-plan.ts'
import { transactionsOf } from './tx-views.ts'

/** Adds a further transaction attempt to a batch whose first attempt was not mined. */

/** The most transaction attempts of a batch; after that, only the deadline ends the batch. */
const attemptsMax = 60

/**
 * Sends the same batch under the next nonce after another transaction of the signer used its nonce. The account
 * executes a batch at most once, so a wrong finding here cannot execute it twice.
 */
export async function reassignNonce<Names extends string>(
  context: ConfirmContext<Names>,
  chainState: ChainState,
): Promise<BatchStepResult<Names> | undefined> {
  const { task, effect, port, nonces } = context
  const { chain, sponsor } = port
  const { raw, nonce, nonceSequence } = newestOf(effect)
  const { account, deadlineSeconds } = effect.intent.batch as { account: string; deadlineSeconds: number }
  const finalBlock = finalBlockOf(port, chainState.head)
  const isLate = chainState.head.timestampSeconds > deadlineSeconds || effect.txAttempts.length >= attemptsMax
  if (isLate || finalBlock < 0n) return undefined
  if ((await chain.transactionCount(nonceSequence.signer, finalBlock)) <= nonce) return undefined
  const [{ times }, latestState, latest, fees] = await Promise.all([
    chain.executed(account, task.executionId, finalBlock),
    readChainState(effect, chain),
    chain.transactionCount(nonceSequence.signer, 'latest'),
    sponsor.fees(),
  ])
  if (times > sequenceOf(effect) || latestState.mined) return undefined
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
    next: context.steps.confirm,
    state: 'submitted',
    data: { transactions: transactionsOf(context, chainState, 'pending') },
  }
}

/**
 * The node refused the gas limit of the newest bytes, which can never become valid, so an empty transaction
 * takes their nonce. If another node has accepted the bytes, only one of the two is mined, since both have the
 * same nonce, and its receipt decides.
 */
export async function cancelInvalid<Names extends string>(
  context: ConfirmContext<Names>,
  chainState: ChainState,
): Promise<BatchStepResult<Names> | undefined> {
  if (!chainState.isInvalid) return undefined
  const { sponsor } = context.port
  const cancellation = await sponsor.cancellationOf(newestOf(context.effect).raw)
  return cancellation && replaceNewest(context, chainState, cancellation)
}

/** Replaces only the lowest unmined nonce of a signer: later ones wait for it, and a higher fee does not help them. */
export async function replaceStuck<Names extends string>(
  context: ConfirmContext<Names>,
  chainState: ChainState,
): Promise<BatchStepResult<Names> | undefined> {
  // A node that does not answer will not accept a higher fee either.
  if (chainState.outcomeUnknown) return undefined
  const { effect, port, now } = context
  const { chain, sponsor } = port
  const newest = newestOf(effect)
  if (now.getTime() - newest.at.getTime() < chain.row.stuckAfterMs) return undefined
  const mined = await chain.transactionCount(newest.nonceSequence.signer, 'latest')
  if (mined !== newest.nonce) return undefined
  const replacement = await sponsor.replacementOf(newest.raw)
  return replacement && replaceNewest(context, chainState, replacement)
}

function replaceNewest<Names extends string>(
  context: ConfirmContext<Names>,
  chainState: ChainState,
  replacement: Replacement,
): BatchStepResult<Names> {
  const { effect, port } = context
  const { raw, nonceSequence } = newestOf(effect)
  return {
    replace: {
      effectId: effect.id,
      nonceSequence,
      build: () => port.sponsor.replace(raw, nonceSequence.signer, replacement),
    },
    next: context.steps.confirm,
    state: 'submitted',
    data: { transactions: transactionsOf(context, chainState, 'pending') },
  }
}
