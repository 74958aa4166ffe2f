import type { Action, Usage } from './plan.ts'

/** One event of a stream, before it is written. */
export type Frame = { event?: string; data: string }

/** Writes the actions of a turn in one interface. */
export type Encoder = {
  begin(): Frame[]
  encode(action: Action): Frame[]
  end(): Frame[]
  /** The answer without a stream. */
  whole(actions: readonly Action[]): Record<string, unknown>
}

export type EncoderOptions = {
  model: string
  createdMs: number
  usage: Usage | undefined
  /** Whether a stream reports its usage. */
  hasUsage: boolean
}

export const isText = (action: Action): action is Extract<Action, { text: string }> => 'text' in action

/** The text of all actions of a kind. */
export const joined = (actions: readonly Action[], type: Action['type']): string =>
  actions
    .filter((each) => each.type === type)
    .map((each) => (isText(each) ? each.text : ''))
    .join('')

/** The calls of a turn with their whole arguments. */
export const wholeCalls = (actions: readonly Action[]) =>
  actions.flatMap((action) => {
    if (action.type !== 'call') return []
    const { call } = action
    const text = actions
      .map((each) => (each.type === 'arguments' && each.call === call ? each.text : ''))
      .join('')
    return [{ id: call.id, name: call.name, text }]
  })
