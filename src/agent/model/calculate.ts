import { computed } from '#kernel/money/figure-format.ts'
import type { ToolDescription } from '#kernel/wire/chat-answerer.ts'
import type { Json, JsonObject } from '#kernel/wire/json.ts'
import type { KnownFigures } from './known-figures.ts'

/** Offers exact arithmetic on numbers that were read or said, because a model that computes by itself makes errors. */

const operations = ['sum', 'difference', 'product', 'ratio', 'change'] as const
type Operation = (typeof operations)[number]

export const calculateTool: ToolDescription = {
  name: 'calculate',
  description:
    'Exact arithmetic on two numbers of results or of the person. difference: a - b. ratio: a / b. change: by how much a is above b, as a fraction of b.',
  inputSchema: {
    type: 'object',
    properties: {
      operation: { type: 'string', enum: [...operations] },
      a: { type: 'string', description: 'Decimal text, with all its digits' },
      b: { type: 'string', description: 'Decimal text, with all its digits' },
    },
    required: ['operation', 'a', 'b'],
  },
  effect: 'read',
  hasDryRun: false,
}

const isOperation = (value: Json | undefined): value is Operation => operations.some((name) => name === value)

function resultOf(operation: Operation, a: string, b: string): string | undefined {
  if (operation !== 'sum') return computed(operation, a, b)
  const negated = computed('difference', '0', b)
  return negated === undefined ? undefined : computed('difference', a, negated)
}

export function calculate(input: JsonObject, figures: KnownFigures): { value: string } | { problem: string } {
  const { operation, a, b } = input
  if (!isOperation(operation)) return { problem: `operation is one of ${operations.join(', ')}` }
  for (const [name, value] of [
    ['a', a],
    ['b', b],
  ] as const)
    if (typeof value !== 'string' || !figures.hasExactly(value.replace(/^-/, '')))
      return {
        problem: `${name} is no number of a result or of the person, as decimal text with all its digits`,
      }
  try {
    const value = resultOf(operation, String(a), String(b))
    return value === undefined ? { problem: 'there is no such value' } : { value }
  } catch (error) {
    if (error instanceof RangeError) return { problem: 'the numbers have too many digits' }
    throw error
  }
}
