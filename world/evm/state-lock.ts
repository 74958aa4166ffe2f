import type { Rpc } from './rpc.ts'

/** A chain that mines while it is dumped yields a state with effects of blocks that are not in it. */
export type StateLock = {
  /** Runs a change of the state at once; waits while the chain is locked. */
  runShared: <T>(run: () => Promise<T>) => Promise<T>
  /** No block is mined and no change runs meanwhile; transactions wait in the node's pool. */
  runExclusive: <T>(rpc: Rpc, run: () => Promise<T>) => Promise<T>
  isLocked: () => boolean
  whenUnlocked: () => Promise<unknown>
}

export const pendingIn = async (rpc: Rpc): Promise<number> =>
  Number(((await rpc.call('txpool_status')) as { pending: string }).pending)

/** Mine the pool first: switching automine on mines it too, and would add an empty block later. */
export const resumeAutomine = async (rpc: Rpc): Promise<void> => {
  try {
    if ((await pendingIn(rpc)) > 0) await rpc.call('evm_mine')
  } finally {
    await rpc.call('evm_setAutomine', [true])
  }
}

/** Pauses mining, and returns the function that resumes it. */
const pauseMining = async (rpc: Rpc): Promise<() => Promise<void>> => {
  const [automine, interval] = await rpc.batch([
    { method: 'anvil_getAutomine' },
    { method: 'anvil_getIntervalMining' },
  ])
  if (automine === true) {
    await rpc.call('evm_setAutomine', [false])
    return () => resumeAutomine(rpc)
  }
  if (interval === null || Number(interval) === 0) return () => Promise.resolve()
  await rpc.call('evm_setIntervalMining', [0])
  return async () => {
    await rpc.call('evm_setIntervalMining', [Number(interval)])
  }
}

export const createStateLock = (): StateLock => {
  let exclusive: Promise<unknown> | undefined
  const shared = new Set<Promise<unknown>>()

  const runShared = async <T>(run: () => Promise<T>): Promise<T> => {
    while (exclusive) await exclusive
    const work = run()
    const ended = work.catch(() => {})
    shared.add(ended)
    void ended.then(() => shared.delete(ended))
    return work
  }

  const runExclusive = async <T>(rpc: Rpc, run: () => Promise<T>): Promise<T> => {
    while (exclusive) await exclusive
    const work = (async () => {
      await Promise.all(shared)
      const resume = await pauseMining(rpc)
      return run().finally(resume)
    })()
    const ended = work
      .catch(() => {})
      .then(() => {
        exclusive = undefined
      })
    exclusive = ended
    return work
  }

  return {
    runShared,
    runExclusive,
    isLocked: () => exclusive !== undefined,
    whenUnlocked: () => exclusive ?? Promise.resolve(),
  }
}
