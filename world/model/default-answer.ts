import {
  type Conversation,
  isRecord,
  lastUserText,
  type OfferedTool,
  recentResults,
  type ToolResult,
} from './conversation.ts'
import type { Step } from './script.ts'

/**
 * The answer without a script, for people who try a chat: calls the offered tool whose words are most in the question,
 * if its arguments are in the question too, and then reports the result. It does not understand anything.
 */

const linesMax = 20
const valueMax = 120
const overlapMin = 1

const wordsOf = (text: string): Set<string> =>
  new Set(
    text
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter((word) => word.length > 2)
      .map((word) => word.replace(/s$/, '')),
  )

const overlapOf = (question: ReadonlySet<string>, { name }: OfferedTool): number =>
  [...wordsOf(name)].filter((word) => question.has(word)).length

/** A value that the question or the schema names; undefined where neither does. */
const argumentOf = (schema: unknown, question: string): unknown => {
  if (!isRecord(schema)) return undefined
  const { default: initial, const: only, enum: values } = schema
  if (initial !== undefined) return initial
  if (only !== undefined) return only
  if (!Array.isArray(values)) return undefined
  const words = question.toLowerCase().split(/[^a-z0-9_]+/)
  return values.find((value) => words.includes(String(value).toLowerCase()))
}

const argumentsFor = ({ schema }: OfferedTool, question: string): Record<string, unknown> | undefined => {
  const properties = isRecord(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  const found = required.map((name) => [name, argumentOf(properties[name], question)] as const)
  return found.every(([, value]) => value !== undefined) ? Object.fromEntries(found) : undefined
}

const chosenCall = ({ tools }: Conversation, question: string) => {
  const words = wordsOf(question)
  const candidates = tools
    .map((tool) => ({ tool, overlap: overlapOf(words, tool), input: argumentsFor(tool, question) }))
    .filter(({ overlap, input }) => overlap >= overlapMin && input !== undefined)
    .sort((a, b) => b.overlap - a.overlap)
  return candidates[0]
}

const valueText = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > valueMax ? `${text.slice(0, valueMax)}...` : text
}

/** The first lines of a result: its fields, or its text as it is. */
const linesOf = (text: string): string[] => {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return [valueText(text)]
  }
  if (!isRecord(parsed)) return [valueText(parsed)]
  return Object.entries(parsed)
    .slice(0, linesMax)
    .map(([name, value]) => `- ${name}: ${valueText(value)}`)
}

const reportOf = ({ name, text }: ToolResult): string => `Result of ${name}:\n${linesOf(text).join('\n')}`

const introduction =
  'This is the stand-in model of the local world: it understands nothing, and repeats what tools return.'

export const defaultSteps = (conversation: Conversation): Step[] => {
  const results = recentResults(conversation)
  const last = results.at(-1)
  if (last) return [{ type: 'text', text: reportOf(last) }]
  const question = lastUserText(conversation)
  const chosen = chosenCall(conversation, question)
  if (chosen) return [{ type: 'tools', calls: [{ name: chosen.tool.name, arguments: chosen.input ?? {} }] }]
  const names = conversation.tools.slice(0, linesMax).map(({ name }) => name)
  const hint =
    names.length === 0
      ? 'No tool was offered to it.'
      : `Name one of its tools in a question: ${names.join(', ')}.`
  return [{ type: 'text', text: `${introduction} ${hint}` }]
}
