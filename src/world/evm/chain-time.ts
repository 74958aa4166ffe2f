import type { WorldClock } from '#world/clock.ts'
import type { Rpc } from './rpc.ts'

export type Head = { number: number; atSeconds: number; hash: string }

export const headOf = async (rpc: Rpc): Promise<Head> => {
  const block = await rpc.call('eth_getBlockByNumber', ['latest', false])
  const { number, timestamp, hash } = block as { number: string; timestamp: string; hash: string }
  return { number: Number(number), atSeconds: Number(timestamp), hash }
}

/** One empty block at the world's time. Returns its number. */
export const mineAtWorldTime = async (rpc: Rpc, clock: WorldClock): Promise<number> => {
  const { number, atSeconds } = await headOf(rpc)
  const nowSeconds = Math.max(Math.floor(clock.nowMs() / 1000), atSeconds)
  // Anvil keeps no clock over a restart and would fall back to the machine's, even into the chain's past.
  await rpc.batch([{ method: 'evm_setTime', params: [nowSeconds] }, { method: 'evm_mine' }])
  return number + 1
}

/**
 * Automine makes a block per transaction and none between, and `eth_call` sees the time of the last block: a
 * vault that grows with time would stand still. So a read that finds the head older than this gets a new block
 * first. Blocks are made for readers only: a world that nobody looks at costs nothing and its files do not grow.
 */
const idleMs = 2_000
/** When only pollers look, and nobody trades, time may move in larger steps. */
const quietIdleMs = 10_000
const quietAfterMs = 60_000

export type ChainTime = {
  /** To be awaited before a read; undefined, and free, when nothing is due. */
  mineIfStale: (rpc: Rpc) => Promise<void> | undefined
  sync: (rpc: Rpc) => Promise<void>
}

export const chainTime = (clock: WorldClock): ChainTime => {
  let pendingTick: Promise<void> | undefined
  let checkedAt = 0
  let activeAt = Date.now()
  let ownHead = -1

  const tick = async (rpc: Rpc) => {
    const { number, atSeconds } = await headOf(rpc)
    if (number !== ownHead) activeAt = Date.now()
    ownHead = number
    const limitMs = Date.now() - activeAt > quietAfterMs ? quietIdleMs : idleMs
    if (clock.nowMs() - atSeconds * 1000 >= limitMs) ownHead = await mineAtWorldTime(rpc, clock)
  }

  return {
    mineIfStale: (rpc) => {
      if (pendingTick || Date.now() - checkedAt < idleMs) return pendingTick
      checkedAt = Date.now()
      // A node that dies meanwhile fails the request itself; there is nothing to add.
      pendingTick = tick(rpc)
        .catch(() => {})
        .finally(() => {
          pendingTick = undefined
        })
      return pendingTick
    },
    sync: async (rpc) => {
      activeAt = Date.now()
      ownHead = await mineAtWorldTime(rpc, clock)
    },
  }
}
