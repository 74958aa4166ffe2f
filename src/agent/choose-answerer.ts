import type { Registry } from '#grammar/operation-registry.ts'
import { memoryAfter, readTurn, type TurnReading } from '#grammar/read-turn.ts'
import type { Agent, Answerer, TurnEnd } from '#kernel/wire/chat-answerer.ts'
import { isTimeframe, type Timeframe } from '#market/candle.ts'
import type { ReadAnswerer } from './grammar-answerer.ts'
import { analyseMarket } from './research/market-analyzer-agent.ts'
import { researchAsset } from './research/researcher.ts'

/**
 * This module reads a turn once, and chooses its answerer by the agent that the turn names. Analyses and reports have
 * an answerer of their own, whether or not there is a model, because each of their figures is a claim that can be
 * computed again. Every other turn goes to the grammar or to a model.
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

function subjectOf({ turn, understanding, registry: { names } }: TurnReading): Subject | undefined {
  const [intent, ...more] = understanding.intents
  if (!intent || more.length > 0 || !intentsOf[turn.agent].includes(intent.name)) return undefined
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

export function chooseAnswerer(registryOf: () => Promise<Registry>, other: ReadAnswerer): Answerer {
  return {
    async run(turn, tools, emit, signal): Promise<TurnEnd> {
      const reading = readTurn(turn, await registryOf())
      const subject = subjectOf(reading)
      if (!subject) return other.run(reading, tools, emit, signal)
      const { asset, others, timeframe, unserved } = subject
      const session = { tools, emit, signal }
      const { citations } =
        turn.agent === 'ProDeepResearchAgent'
          ? await researchAsset({ asset, others, names: reading.registry.names }, session)
          : await analyseMarket({ asset, others, timeframe, unserved }, session)
      return { stopReason: 'end', citations, memory: memoryAfter(reading) }
    },
  }
}
