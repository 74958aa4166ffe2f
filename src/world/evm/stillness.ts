import type { Rpc } from './rpc.ts'

/** A chain that mines while it is dumped gives a state that holds effects of blocks that are not in it. */
export type Stillness = {
  /** Runs what changes the state at once; waits while the chain is held. */
  change: <T>(run: () => Promise<T>) => Promise<T>
  /** Nothing is mined meanwhile, and no change is under way; transactions wait in the node's pool. */
  hold: <T>(rpc: Rpc, run: () => Promise<T>) => Promise<T>
  isHeld: () => boolean
  settled: () => Promise<unknown>
}

const pendingIn = async (rpc: Rpc): Promise<number> =>
  Number(((await rpc.call('txpool_status')) as { pending: string }).pending)

/** Stops the mining of new blocks, and answers what starts it again as it was. */
const pauseMining = async (rpc: Rpc): Promise<() => Promise<void>> => {
  const [automine, interval] = await rpc.batch([
    { method: 'anvil_getAutomine' },
    { method: 'anvil_getIntervalMining' },
  ])
  if (automine === true) {
    await rpc.call('evm_setAutomine', [false])
    return async () => {
      await rpc.call('evm_setAutomine', [true])
      // What came meanwhile would wait for the next transaction.
      if ((await pendingIn(rpc)) > 0) await rpc.call('evm_mine')
    }
  }
  if (interval === null || Number(interval) === 0) return () => Promise.resolve()
  await rpc.call('evm_setIntervalMining', [0])
  return async () => {
    await rpc.call('evm_setIntervalMining', [Number(interval)])
  }
}

export const stillness = (): Stillness => {
  let held: Promise<unknown> | undefined
  const changing = new Set<Promise<unknown>>()

  const change = async <T>(run: () => Promise<T>): Promise<T> => {
    while (held) await held
    const work = run()
    const ended = work.catch(() => {})
    changing.add(ended)
    void ended.then(() => changing.delete(ended))
    return work
  }

  const hold = async <T>(rpc: Rpc, run: () => Promise<T>): Promise<T> => {
    while (held) await held
    const work = (async () => {
      await Promise.all(changing)
      const resume = await pauseMining(rpc)
      return run().finally(resume)
    })()
    const ended = work
      .catch(() => {})
      .then(() => {
        held = undefined
      })
    held = ended
    return work
  }

  return { change, hold, isHeld: () => held !== undefined, settled: () => held ?? Promise.resolve() }
}
