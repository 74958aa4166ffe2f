import type { ActPlan, VenueActs } from '#features/venue/act.ts'
import { type Exit, isEnding } from '#features/venue/bracket.ts'
import { wantedExits } from '#features/venue/memory.ts'
import { completed, factsOf, type PlaceNeeds, planOf } from '#features/venue/place.ts'
import type { Standing } from '#features/venue/report.ts'
import type { EffectUpdate, JsonObject, Step, StepContext, StepResult, TaskView } from '#kernel/task.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type KeptExit, spotMemoryOf, withKept } from './keep.ts'

/**
 * A holding is not sold because its exit found no place at the venue: that is what the owner wanted to have. The house
 * keeps what is missing, and takes its sibling over too: apart from each other neither would end the other.
 */

type Needs = { acts: VenueActs; venue: Pick<Hyperliquid, 'order' | 'fillsSince'> }
type Found = Pick<Standing, 'entry' | 'exits'>

const leg = 'regroup'
const foundOf = (task: TaskView): Found => task.data.standing as unknown as Found
const stands = ({ state, orderId }: Exit): boolean =>
  orderId !== null && (state === 'standing' || state === 'waiting')

const exitsOf = (task: TaskView, ofThese: (exit: Exit) => boolean, exits: readonly Exit[]): KeptExit[] =>
  wantedExits(spotMemoryOf(task))
    .filter((wanted) => exits.some((exit) => exit.leg === wanted.leg && ofThese(exit)))
    .map(({ leg, wanted }) => ({ leg, price: wanted.price }))

/** What stays where it is, and what the house keeps of it. */
function settled(
  task: TaskView,
  context: StepContext,
  standing: Standing,
  { kept, effects }: { kept: KeptExit[]; effects: EffectUpdate[] },
): StepResult {
  const found = completed(task, spotMemoryOf(task), standing, effects)
  return withKept(task, context, standing, found, kept)
}

const isGone = ({ state }: Exit): boolean => state === 'gone'

export function regrouping({ acts, venue }: Needs): { mend: PlaceNeeds['mend']; steps: { regrouped: Step } } {
  const mend: PlaceNeeds['mend'] = async (task, context, standing, effects) => {
    const { entry, exits } = standing
    const fired = exits.some(({ state }) => state === 'done')
    const kept = fired ? [] : exitsOf(task, isGone, exits)
    const siblings = exits.filter(stands)
    if (fired || siblings.length === 0) return settled(task, context, standing, { kept, effects })
    const memory = spotMemoryOf(task)
    const plan: ActPlan = {
      ...{ leg, ...planOf(memory), facts: factsOf(memory, { usdMicros: 0n, exit: true }) },
      action: {
        type: 'cancel',
        cancels: siblings.map(({ orderId }) => ({ asset: memory.asset, orderId: orderId! })),
      },
    }
    const refused = () => settled(task, context, standing, { kept, effects })
    const data: JsonObject = { standing: { entry, exits } as unknown as JsonObject }
    return acts.intend(task, plan, { now: context.now, next: 'regrouped', data, effects, refused })
  }

  const regrouped: Step = async (task, context) => {
    const { entry, exits } = foundOf(task)
    const { account, since_ms: sinceMs } = spotMemoryOf(task)
    const siblings = exits.filter(stands)
    const verdict = await acts.settle<string[]>({
      ...{ task, leg, signal: context.signal, read: () => undefined },
      async look() {
        const found = await Promise.all(siblings.map(({ orderId }) => venue.order(account, orderId!)))
        const statuses = found.map((each) => each?.status ?? 'open')
        return statuses.every((status) => status !== 'open') ? statuses : undefined
      },
    })
    const { effects } = verdict
    if (verdict.is === 'doubt') return acts.wait(task, 'regrouped', effects)
    const fills = (await venue.fillsSince(account, sinceMs)).filter(
      ({ orderId }) => orderId === entry.orderId,
    )
    // The sibling was not to be had: it stays at the venue, and the house keeps the other.
    if (verdict.is !== 'done')
      return settled(task, context, { entry, exits, fills }, { kept: exitsOf(task, isGone, exits), effects })
    const ended = verdict.value.every(isEnding)
    const left = exits.map(
      (exit): Exit => (stands(exit) ? { ...exit, state: ended ? 'gone' : 'done' } : exit),
    )
    // One that fired on the way is selling the holding, and nothing is left to protect.
    const kept = ended ? exitsOf(task, isGone, left) : []
    return settled(task, context, { entry, exits: left, fills }, { kept, effects })
  }

  return { mend, steps: { regrouped } }
}
