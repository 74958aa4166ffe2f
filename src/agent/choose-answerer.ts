import type { Registry } from '#grammar/registry.ts'
import { memoryAfter, readTurn } from '#grammar/turn.ts'
import type { Understanding } from '#grammar/understanding.ts'
import type { Agent, Answerer, Turn, TurnEnd } from '#kernel/wire/answerer.ts'
import { isTimeframe, type Timeframe } from '#market/candle.ts'
import { analyseMarket } from './research/market-analyzer-agent.ts'
import { researchAsset } from './research/researcher.ts'

/**
 * This module chooses the answerer of a turn by the agent that the turn names. Analyses and reports have an answerer of
 * their own, whether or not there is a model, because each of their figures is a claim that can be computed again.
 * Every other turn goes to the grammar or to a model.
 */

const defaultTimeframe: Timeframe = '4h'
/** The intents that each agent answers by itself; a turn with another intent goes to the grammar or to a model. */
const intentsOf: Readonly<Record<Agent, readonly string[]>> = {
  ProAgent: [],
  MarketAnalyzerAgent: ['analysis', 'price', 'funding', 'research'],
  ProDeepResearchAgent: ['analysis', 'price', 'funding', 'research', 'security', 'supported'],
}

type Asset = Registry['names']['universe']['assets'][number]
type Subject = {
  asset: Asset
  others: string[]
  timeframe: Timeframe
  /** A timeframe that was requested but is not analysed. */
  unserved: string | undefined
}

function subjectOf({ agent }: Turn, { intents }: Understanding, { names }: Registry): Subject | undefined {
  const [intent, ...more] = intents
  if (!intent || more.length > 0 || !intentsOf[agent].includes(intent.intent)) return undefined
  const { assets, asset, token, timeframe } = intent.slots
  const [first, ...others] = (assets ?? asset ?? token ?? '').split(/[ ,]+/).filter((word) => word !== '')
  const found = first === undefined ? undefined : names.bySymbol.get(first.toLowerCase())
  if (!found) return undefined
  const isServed = timeframe !== undefined && isTimeframe(timeframe)
  return {
    asset: found,
    others,
    timeframe: isServed ? timeframe : defaultTimeframe,
    unserved: isServed ? undefined : timeframe,
  }
}

export function chooseAnswerer(registryOf: () => Promise<Registry>, other: Answerer): Answerer {
  return {
    async run(turn, tools, emit, signal): Promise<TurnEnd> {
      const registry = await registryOf()
      const understanding = readTurn(turn, registry)
      const subject = subjectOf(turn, understanding, registry)
      if (!subject) return other.run(turn, tools, emit, signal)
      const { asset, others, timeframe, unserved } = subject
      const session = { tools, emit, signal }
      const { citations } =
        turn.agent === 'ProDeepResearchAgent'
          ? await researchAsset({ asset, others, names: registry.names }, session)
          : await analyseMarket({ asset, others, timeframe, unserved }, session)
      return { stopReason: 'end', citations, memory: memoryAfter(turn, understanding) }
    },
  }
}
