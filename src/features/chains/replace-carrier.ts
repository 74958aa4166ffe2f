import type { StepResult } from '#kernel/task.ts'
import { type Follow, finalBlockOf, look, newestOf, type Sight } from './chain-state.ts'
import { transactionsOf } from './mined.ts'

/** A further transaction for a batch that the first one did not bring to the chain. */

/** So often is one batch carried under a new number; then its deadline decides. */
const carriersMax = 60

/**
 * Other bytes of the same signer took the number: the same batch goes out under the next one. The account executes it
 * at most once whatever carries it, so even a proof that turns out wrong moves nothing twice.
 */
export async function renumberTaken(follow: Follow, sight: Sight): Promise<StepResult | undefined> {
  const { task, effect, port, lanes } = follow
  const { chain, sponsor } = port
  const { raw, nonce, lane } = newestOf(effect)
  const { account, deadlineSeconds } = effect.intent.batch as { account: string; deadlineSeconds: number }
  const finalBlock = finalBlockOf(port, sight.head)
  const isLate = sight.head.timestampSeconds > deadlineSeconds || effect.carriers.length >= carriersMax
  if (isLate || finalBlock < 0n) return undefined
  if ((await chain.transactionCount(lane.signer, finalBlock)) <= nonce) return undefined
  const [{ times }, again, latest, fees] = await Promise.all([
    chain.executed(account, task.id, finalBlock),
    look(effect, chain),
    chain.transactionCount(lane.signer, 'latest'),
    sponsor.fees(),
  ])
  if (times > 0n || again.mined) return undefined
  return {
    replace: {
      effectId: effect.id,
      lane,
      build: async (tx) =>
        sponsor.renumber(raw, lane.signer, { nonce: await lanes.take(tx, lane, latest), fees }),
    },
    next: 'confirm',
    state: 'submitted',
    data: { transactions: transactionsOf(follow, sight, 'pending') },
  }
}

/** Only the first open number of a lane is replaced: those behind it wait for it, not for a higher fee. */
export async function replaceStuck(follow: Follow, sight: Sight): Promise<StepResult | undefined> {
  // A node that takes nothing is not convinced by a higher fee.
  if (sight.doubt) return undefined
  const { effect, port, now } = follow
  const { chain, sponsor } = port
  const newest = newestOf(effect)
  if (now.getTime() - newest.at.getTime() < chain.row.stuckAfterMs) return undefined
  const mined = await chain.transactionCount(newest.lane.signer, 'latest')
  if (mined !== newest.nonce) return undefined
  const how = await sponsor.replacementOf(newest.raw)
  if (!how) return undefined
  return {
    replace: {
      effectId: effect.id,
      lane: newest.lane,
      build: () => sponsor.replace(newest.raw, newest.lane.signer, how),
    },
    next: 'confirm',
    state: 'submitted',
    data: { transactions: transactionsOf(follow, sight, 'pending') },
  }
}
