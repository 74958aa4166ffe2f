import type { ActPlan, VenueActs } from '#features/venue/act.ts'
import type { Exit } from '#features/venue/bracket.ts'
import { type CancelOutcome, lookUpEnd } from '#features/venue/cancel.ts'
import { wantedExits } from '#features/venue/memory.ts'
import { completed, factsOf, type PlaceNeeds, planOf } from '#features/venue/place.ts'
import type { Standing } from '#features/venue/report.ts'
import type { EffectUpdate, JsonObject, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { Hyperliquid, LegStatus } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type KeptExit, spotMemoryOf, withKept } from './keep.ts'

/**
 * A holding is not sold because its exit found no place at the venue: that is what the owner wanted to have. The gateway
 * keeps what is missing, and takes its sibling over too: apart from each other neither would end the other.
 */

type Needs = { acts: VenueActs; venue: Pick<Hyperliquid, 'order' | 'openOrders' | 'fillsSince'> }

const leg = 'regroup'
const foundOf = (task: TaskView): Standing => task.data.standing as unknown as Standing
const stands = ({ state, orderId }: Exit): boolean =>
  orderId !== null && (state === 'standing' || state === 'waiting')

const exitsOf = (task: TaskView, ofThese: (exit: Exit) => boolean, exits: readonly Exit[]): KeptExit[] =>
  wantedExits(spotMemoryOf(task))
    .filter((wanted) => exits.some((exit) => exit.leg === wanted.leg && ofThese(exit)))
    .map(({ leg, wanted }) => ({ leg, price: wanted.price }))

/** What stays where it is, and what the gateway keeps of it. */
function settled(
  task: TaskView,
  context: StepContext,
  standing: Standing,
  { kept, effects }: { kept: KeptExit[]; effects: EffectUpdate[] },
): StepResult {
  const found = completed(task, spotMemoryOf(task), standing, { effects, now: context.now })
  return withKept(task, context, standing, found, kept)
}

const isGone = ({ state }: Exit): boolean => state === 'gone'

export function regrouping({ acts, venue }: Needs): { mend: PlaceNeeds['mend']; steps: { regrouped: Step } } {
  const mend: PlaceNeeds['mend'] = async (task, context, standing, effects) => {
    const { exits } = standing
    const fired = exits.some(({ state }) => state === 'done')
    const kept = fired ? [] : exitsOf(task, isGone, exits)
    const siblings = exits.filter(stands)
    if (fired || siblings.length === 0) return settled(task, context, standing, { kept, effects })
    const memory = spotMemoryOf(task)
    const plan: ActPlan = {
      leg,
      ...planOf(memory),
      facts: factsOf(memory, { usdMicros: 0n, exit: true }),
      action: {
        type: 'cancel',
        cancels: siblings.map(({ orderId }) => ({ asset: memory.asset, orderId: orderId! })),
      },
    }
    const refused = () => settled(task, context, standing, { kept, effects })
    // With its fills: a list that is read later may lag behind the one that showed them.
    const data: JsonObject = { standing: standing as unknown as JsonObject }
    return acts.intend(task, plan, { now: context.now, next: 'regrouped', data, effects, refused })
  }

  const regrouped: Step = async (task, context) => {
    const { entry, exits, fills } = foundOf(task)
    const { account, since_ms: sinceMs, size } = spotMemoryOf(task)
    const siblings = exits.filter(stands)
    const verdict = await acts.settle<CancelOutcome[]>({
      task,
      leg,
      signal: context.signal,
      read: (legs: LegStatus[]) =>
        legs.length === siblings.length && legs.every((each) => each.is === 'accepted')
          ? legs.map(() => ({ status: 'canceled', isCancelled: true }))
          : undefined,
      async look(how) {
        const ends = await Promise.all(
          siblings.map(({ orderId }) =>
            lookUpEnd(venue, { account, sinceMs, orderId: orderId!, left: size, ...how }),
          ),
        )
        return ends.every((end) => end !== undefined) ? ends : undefined
      },
    })
    const { effects } = verdict
    if (verdict.is === 'doubt') return acts.wait(task, 'regrouped', verdict)
    // The sibling was not to be had: it stays at the venue, and the gateway keeps the other.
    if (verdict.is !== 'done')
      return settled(task, context, { entry, exits, fills }, { kept: exitsOf(task, isGone, exits), effects })
    const ended = verdict.value.every(({ isCancelled }) => isCancelled)
    const left = exits.map(
      (exit): Exit => (stands(exit) ? { ...exit, state: ended ? 'gone' : 'done' } : exit),
    )
    // One that fired on the way is selling the holding, and nothing is left to protect.
    const kept = ended ? exitsOf(task, isGone, left) : []
    return settled(task, context, { entry, exits: left, fills }, { kept, effects })
  }

  return { mend, steps: { regrouped } }
}
