import type { Names } from './names.ts'
import type { Slots } from './reader.ts'

/** One answer to a question: what it fills, and which intent goes on with it. */
export type Choice = { label: string; fill: Slots; intent?: string }

/** Offers the values of a slot, each with its label. */
export const choose = (slot: string, labels: Readonly<Record<string, string>>): Choice[] =>
  Object.entries(labels).map(([value, label]) => ({ label, fill: { [slot]: value } }))

export const chainChoices = (chainIds: readonly string[], { chainById }: Names, slot = 'chain'): Choice[] =>
  chainIds.flatMap((id) => {
    const chain = chainById.get(id)
    return chain ? [{ label: chain.displayName, fill: { [slot]: id } }] : []
  })
