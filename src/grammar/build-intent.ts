import type { Slots } from './clause-reader.ts'
import type { Mood } from './clauses.ts'
import { type Frame, isMutating } from './intent-frame.ts'
import { changes, type Registry } from './operation-registry.ts'
import { stepsOf } from './resolve-plan.ts'
import type { Intent } from './understanding.ts'

/**
 * Makes the intent of a frame with these slots. In another mood than `do`, as in a question or a supposition, its steps
 * that would change something are left out.
 */
export function intentOf(
  frame: Frame,
  slots: Slots,
  { mood, registry }: { mood: Mood; registry: Registry },
): Intent {
  const steps = stepsOf(frame, slots, registry.names)
  const isThought = mood !== 'do' && isMutating(frame)
  const intent: Intent = {
    name: frame.intent,
    effect: isThought ? 'quote' : frame.effect,
    mood,
    slots,
    steps: isThought ? steps.filter((step) => !changes(step, registry)) : steps,
  }
  if (frame.route) intent.route = frame.route
  return intent
}
