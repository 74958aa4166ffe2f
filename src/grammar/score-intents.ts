import type { Names } from './asset-and-chain-names.ts'
import { featuresOf } from './clause-features.ts'
import { createReader, leftOver, type Slots } from './clause-reader.ts'
import type { Clause } from './clauses.ts'
import { type Feature, matches } from './feature-rules.ts'
import { frames } from './frames.ts'
import { type Frame, isMutating, missingOf } from './intent-frame.ts'
import { slotReaders } from './slot-readers.ts'
import type { Token } from './tag.ts'

/** How well a frame fits a clause, with the slots that it reads from the clause. */
export type Scored = {
  frame: Frame
  slots: Slots
  left: readonly Token[]
  /** The positions of the tokens that the slots were read from. */
  taken: ReadonlySet<number>
  score: number
}

const weights = { group: 2, required: 2, optional: 1, missing: -3, left: -2, readOfOrder: -4 }

export function readSlots(
  frame: Frame,
  clause: Clause,
  { names, nowMs }: { names: Names; nowMs: number },
): Pick<Scored, 'slots' | 'left' | 'taken'> {
  const reader = createReader(clause.tokens, names, clause.head)
  const read: Slots = {}
  for (const name of frame.readers) slotReaders[name](reader, read, nowMs)
  const slots: Slots = {}
  for (const name of frame.slots) if (read[name] !== undefined) slots[name] = read[name]
  return { slots, left: leftOver(reader), taken: reader.taken }
}

function fits({ when, not, head, effect }: Frame, clause: Clause, found: ReadonlySet<Feature>): boolean {
  if (!when.every((rule) => matches(rule, found))) return false
  if (not && matches(not, found)) return false
  if (!isMutating({ effect })) return true
  // A clause about another time, such as "every monday", orders nothing now.
  return !found.has('@timed') && clause.head.some((verb) => head?.includes(verb))
}

/** Scores the frames that fit a clause, best first. Of two frames with the same score, a read comes before an order. */
export function score(clause: Clause, { names, nowMs }: { names: Names; nowMs: number }): Scored[] {
  const found = featuresOf(clause, names, nowMs)
  return frames
    .filter((frame) => fits(frame, clause, found))
    .map((frame) => {
      const { slots, left, taken } = readSlots(frame, clause, { names, nowMs })
      const missing = missingOf(frame, slots)
      const required = (frame.required ?? []).length - missing.length
      const cues = Object.entries(frame.cues ?? {}).reduce(
        (sum, [cue, weight]) => sum + (found.has(cue as Feature) ? weight : 0),
        0,
      )
      const optional = Math.max(0, Object.keys(slots).length - required)
      const total =
        weights.group * frame.when.length +
        cues +
        weights.required * required +
        weights.optional * optional +
        weights.missing * missing.length +
        weights.left * left.length +
        (clause.head.length > 0 && frame.effect === 'read' ? weights.readOfOrder : 0)
      return { frame, slots, left, taken, score: total }
    })
    .sort((a, b) => b.score - a.score)
}
