/** A pool of two gateways that are killed repeatedly. */
import type { Gateway } from '../harness/gateway.ts'

export type GatewayPool = ReturnType<typeof createGatewayPool>

/** Two slots, each of which is filled again as soon as its gateway was killed. */
export function createGatewayPool(start: () => Promise<Gateway>) {
  const slots: (Gateway | undefined)[] = [undefined, undefined]
  const filling: (Promise<void> | undefined)[] = [undefined, undefined]
  let kills = 0
  let nextSlot = 0
  let isClosed = false
  const fill = async (slot: number): Promise<void> => {
    if (isClosed) return
    filling[slot] ??= start()
      .then((gateway) => {
        slots[slot] = gateway
      })
      .finally(() => {
        filling[slot] = undefined
      })
    return filling[slot]
  }
  const killSlot = (slot: number, gateway: Gateway): void => {
    slots[slot] = undefined
    nextSlot = 1 - slot
    kills++
    void gateway.kill().then(() => fill(slot))
  }
  return {
    kills: () => kills,
    ready: () => slots.filter((gateway) => gateway !== undefined),
    fillAll: () => Promise.all(slots.map((gateway, slot) => (gateway ? undefined : fill(slot)))),
    /** The two are killed in turn; one that is still starting cannot be killed, so the other one is. */
    killOne() {
      for (const slot of [nextSlot, 1 - nextSlot]) {
        const gateway = slots[slot]
        if (gateway) return killSlot(slot, gateway)
      }
    },
    /** Nothing where it has been killed already. */
    kill(gateway: Gateway) {
      const slot = slots.indexOf(gateway)
      if (slot >= 0) killSlot(slot, gateway)
    },
    async close() {
      isClosed = true
      await Promise.allSettled(filling)
      await Promise.all(slots.map((gateway) => gateway?.stop()))
    },
  }
}
