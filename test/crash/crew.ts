/** Gateways of one scene, of which some are lost all the time. */
import type { Gateway } from '../harness/gateway.ts'

export type Crew = ReturnType<typeof crewOf>

/** Two places, each of which is filled again as soon as its gateway was killed. */
export function crewOf(start: () => Promise<Gateway>) {
  const places: (Gateway | undefined)[] = [undefined, undefined]
  const filling: (Promise<void> | undefined)[] = [undefined, undefined]
  let kills = 0
  let turn = 0
  let isClosed = false
  const fill = async (place: number): Promise<void> => {
    if (isClosed) return
    filling[place] ??= start()
      .then((gateway) => {
        places[place] = gateway
      })
      .finally(() => {
        filling[place] = undefined
      })
    return filling[place]
  }
  return {
    kills: () => kills,
    ready: () => places.filter((gateway) => gateway !== undefined),
    fillAll: () => Promise.all(places.map((gateway, place) => (gateway ? undefined : fill(place)))),
    /** The two take turns; one that is still starting cannot be killed, so the other one is. */
    killOne() {
      for (const place of [turn, 1 - turn]) {
        const gateway = places[place]
        if (!gateway) continue
        places[place] = undefined
        turn = 1 - place
        kills++
        void gateway.kill().then(() => fill(place))
        return
      }
    },
    async close() {
      isClosed = true
      await Promise.allSettled(filling)
      await Promise.all(places.map((gateway) => gateway?.stop()))
    },
  }
}
