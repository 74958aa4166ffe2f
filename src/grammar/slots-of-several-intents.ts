import type { Slots } from './clause-reader.ts'
import type { Frame, SlotRule } from './intent-frame.ts'

/** Rules for slots: those that several intents share, with their questions, and which rules of a frame are open. */

export const amount: SlotRule = { name: 'amount', question: 'How much?' }
export const asset: SlotRule = { name: 'asset', question: 'Which asset?' }
export const legs: SlotRule = {
  name: 'stop',
  question: 'At which price or percentage?',
  anyOf: ['stop', 'target'],
}

const isFilled = ({ name, anyOf, onlyWith }: SlotRule, slots: Slots): boolean =>
  (onlyWith !== undefined && slots[onlyWith] === undefined) ||
  (anyOf ?? [name]).some((slot) => slots[slot] !== undefined)

export const missingOf = (frame: Frame, slots: Slots): SlotRule[] =>
  (frame.required ?? []).filter((rule) => !isFilled(rule, slots))
