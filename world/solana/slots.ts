import { toBase58 } from './base58.ts'
import { sha256 } from './keys.ts'

export const slotMs = 400
/** LiteSVM's programs count as deployed at this slot, so a world that began below it could not run them. */
const firstSlot = 447_552_000
/** The chain has a year of empty blocks before that, as public chains are older than what is done on them. */
const emptySlots = 78_840_000
/** Some slots have no block, so that clients that confuse slot and height fail here. */
const skippedSlots = 22_360_000
export const slotsPerEpoch = 432_000
/** A blockhash is valid for 150 blocks after its own. */
export const blockhashSlots = 150

export type ClockState = { seed: Uint8Array; genesisMs: number; offsetMs: number; lastMs: number }

export type Slots = ReturnType<typeof slots>

/** Time of the chain: slot and blockhash are functions of the world clock, so they need no snapshot and no timer. */
export const slots = (state: ClockState) => {
  const window = new Map<string, number>()
  let newest = Number.NEGATIVE_INFINITY

  let fixedMs: number | undefined
  let storedSlots = Number.POSITIVE_INFINITY

  const nowMs = (): number => {
    if (fixedMs !== undefined) state.lastMs = Math.max(state.lastMs, fixedMs)
    if (fixedMs !== undefined) return state.lastMs
    /** The wall clock may be set back; the chain's clock never goes back. */
    state.lastMs = Math.max(state.lastMs, Date.now() + state.offsetMs)
    return state.lastMs
  }

  const hashOf = (slot: number): string => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64LE(BigInt(slot))
    return toBase58(sha256(state.seed, bytes))
  }

  const current = (): number => {
    const slot = firstSlot + Math.floor((nowMs() - state.genesisMs) / slotMs)
    if (slot > newest) {
      for (let at = Math.max(newest + 1, slot - blockhashSlots); at <= slot; at++) window.set(hashOf(at), at)
      for (const [hash, at] of window) {
        if (at >= slot - blockhashSlots) break
        window.delete(hash)
      }
      newest = slot
    }
    return slot
  }

  return {
    nowMs,
    current,
    hashOf,
    /** Newest last, for the SlotHashes sysvar. */
    recent: (): ReadonlyMap<string, number> => {
      current()
      return window
    },
    /** The first block that the node has. */
    firstBlock: (): number => Math.max(firstSlot - emptySlots, current() - storedSlots),
    /** Throws away older blocks, as a node without long-term storage does; a larger number brings them back. */
    storeSlots: (count: number): void => {
      storedSlots = count
    },
    msOf: (slot: number): number => state.genesisMs + (slot - firstSlot) * slotMs,
    isBlockhashValid: (blockhash: string): boolean => {
      current()
      return window.has(blockhash)
    },
    /** Runs a function at an earlier time. */
    at: (ms: number, run: () => void): void => {
      fixedMs = ms
      try {
        run()
      } finally {
        fixedMs = undefined
      }
    },
    advance: (advanceMs: number): void => {
      state.offsetMs += advanceMs
    },
  }
}

export const heightOf = (slot: number): number => slot - skippedSlots
export const epochOf = (slot: number): number => Math.floor(slot / slotsPerEpoch)
