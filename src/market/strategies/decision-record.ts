import { createHash } from 'node:crypto'
import { canonicalJson, type JsonObject } from '#kernel/wire/json.ts'
import type { CandleWindow, Windows } from './candle-columns.ts'
import { decide } from './decide.ts'
import type { Decision, DecisionConfig, StrategyState } from './strategy.ts'

/**
 * The bytes of a decision, the same wherever it is made, the hash of what it was made from, and the record from which
 * anybody can make it again.
 */

export const decisionText = (decision: Decision): string => canonicalJson(decision)

const columns = [
  'startMs',
  'open',
  'high',
  'low',
  'close',
  'volume',
] as const satisfies (keyof CandleWindow)[]

/** Hashes the arguments of a decision: candles as IEEE 754 numbers, all else as JSON with sorted keys. */
export function inputsSha256(
  windows: Windows | undefined,
  state: StrategyState,
  config: DecisionConfig,
): string {
  const hash = createHash('sha256')
  hash.update(canonicalJson({ config, state }))
  for (const asset of Object.keys(windows ?? {}).sort()) {
    const window = windows?.[asset]
    if (!window) continue
    hash.update(`\n${asset} ${window.spanMs}\n`)
    for (const name of columns) {
      const { buffer, byteOffset, byteLength } = window[name]
      hash.update(new Uint8Array(buffer, byteOffset, byteLength))
    }
  }
  return hash.digest('hex')
}

/** Which closed candles a window has: they never change, so their bounds are enough to read them again. */
export type WindowBounds = { span_ms: number; end_ms: number; candles: number }
/** The arguments of a decision as JSON. */
export type DecisionInputs = {
  config: DecisionConfig
  state: StrategyState
  /** By asset; null where the decision was made without candles, such as between two closes. */
  windows: Readonly<Record<string, WindowBounds>> | null
}

export function recordInputs(
  windows: Windows | undefined,
  state: StrategyState,
  config: DecisionConfig,
): DecisionInputs & JsonObject {
  const bounds = Object.entries(windows ?? {}).map(([asset, { spanMs, endMs, startMs }]) => [
    asset,
    { span_ms: spanMs, end_ms: endMs, candles: startMs.length },
  ])
  const inputs: DecisionInputs = { config, state, windows: windows ? Object.fromEntries(bounds) : null }
  return inputs as DecisionInputs & JsonObject
}

/** Makes a decision again from its record and the candles that the record names. */
export function replayDecision(
  { config, state }: DecisionInputs,
  windows: Windows | undefined,
): { text: string; inputsSha256: string } {
  return {
    text: decisionText(decide(windows, state, config)),
    inputsSha256: inputsSha256(windows, state, config),
  }
}
