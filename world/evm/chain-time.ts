import type { WorldClock } from '#world/clock.ts'
import type { Rpc } from './rpc.ts'

export type Head = { number: number; atSeconds: number; hash: string }

export const headOf = async (rpc: Rpc): Promise<Head> => {
  const block = await rpc.call('eth_getBlockByNumber', ['latest', false])
  const { number, timestamp, hash } = block as { number: string; timestamp: string; hash: string }
  return { number: Number(number), atSeconds: Number(timestamp), hash }
}

/** Mines one empty block at the world's time. Returns its number. */
export const mineAtWorldTime = async (rpc: Rpc, clock: WorldClock): Promise<number> => {
  const { number, atSeconds } = await headOf(rpc)
  const nowSeconds = Math.max(Math.floor(clock.nowMs() / 1000), atSeconds)
  // Anvil does not store its clock: after a restart it would use the machine's time, even if that is before the last
  // block.
  await rpc.batch([{ method: 'evm_setTime', params: [nowSeconds] }, { method: 'evm_mine' }])
  return number + 1
}

/**
 * Automine makes one block per transaction, and `eth_call` uses the time of the last block, so the yield of a vault
 * would not grow between transactions. A read that finds the head older than this mines a block first. Blocks are made
 * for reads only: an idle world costs nothing and its files do not grow.
 */
const idleMs = 2_000
/** While only polls arrive and no transactions, time may advance in larger steps. */
const quietIdleMs = 10_000
const quietAfterMs = 60_000

export type ChainTime = {
  /** Awaited before a read; undefined when no block is due. */
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
      // If the node stops meanwhile, the request itself fails; nothing to add.
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
