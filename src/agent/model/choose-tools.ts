import { frameOf, frames } from '#grammar/frames.ts'
import type { Frame } from '#grammar/intent-frame.ts'
import type { TurnReading } from '#grammar/read-turn.ts'
import { score } from '#grammar/score-intents.ts'
import type { ToolDescription } from '#kernel/wire/chat-answerer.ts'
import { calculateTool } from './calculate.ts'

/** A turn is offered few tools: among all of them a model chooses worse, and each request costs more tokens. */

export const toolsMax = 16
const scoredMax = 4
/**
 * The tools that every turn gets, for holdings, prices, a quote by dry run, the safety of a token, and the known
 * chains.
 */
const coreTools = ['wallets_holdings', 'perp_markets', 'swap_execute', 'security_check', 'chains_list']
const marketTools = ['market_candles', 'market_funding', 'market_book']

const planOf = ({ plan }: Pick<Frame, 'plan'>): string[] => (plan ?? []).map(({ operation }) => operation)

/**
 * Returns tool names, best first: from the plans of what the grammar understands, the core tools, then from the
 * plans of what it nearly understands.
 */
function plannedNames({ turn, clauses, understanding, registry }: TurnReading): string[] {
  const { intents, ask } = understanding
  const asked = ask ? frameOf(ask.intent) : undefined
  const near = clauses.flatMap((clause) =>
    score(clause, { names: registry.names, nowMs: turn.askedAt.getTime() })
      .slice(0, scoredMax)
      .map(({ frame }) => frame),
  )
  const domains = new Set(
    [...near, ...intents.flatMap(({ name }) => frameOf(name) ?? [])].map(({ domain }) => domain),
  )
  return [
    ...intents.flatMap(({ steps }) => steps.map(({ operation }) => operation)),
    ...(asked ? planOf(asked) : []),
    ...coreTools,
    ...near.flatMap(planOf),
    ...frames.filter(({ domain }) => domains.has(domain)).flatMap(planOf),
  ]
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[a-z]{3,}/g) ?? []

function namedIn(query: string, described: readonly ToolDescription[]): string[] {
  const words = new Set(wordsOf(query).map((word) => word.replace(/s$/, '')))
  return described.flatMap(({ name }) =>
    name.split('_').some((part) => words.has(part.replace(/s$/, ''))) ? [name] : [],
  )
}

export function chooseTools(reading: TurnReading, described: readonly ToolDescription[]): ToolDescription[] {
  const { turn } = reading
  const byName = new Map(described.map((tool) => [tool.name, tool]))
  const names = [
    ...(turn.agent === 'ProAgent' ? [] : marketTools),
    ...plannedNames(reading),
    ...namedIn(turn.query, described),
    ...marketTools,
  ]
  const chosen = [...new Set(names)].flatMap((name) => byName.get(name) ?? [])
  return [...chosen.slice(0, toolsMax - 1), calculateTool]
}
