import { sha256 } from '#kernel/id.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import { printedValue, type Unit } from '#market/figure-text.ts'
import { type Claim, type ClaimKind, isClaimId, type Source } from './claim.ts'
import { formulas } from './claim-formulas.ts'

/**
 * Makes the claims of a report; a claim without a value is not made, so an unknown value never becomes a number.
 */

export type ClaimBook = {
  source(tool: string, args: unknown, read: { output: unknown; fetchedAt: Date }): string
  /** Makes a claim whose value is at a JSON pointer of a source. */
  measured(text: string, unit: Unit, at: string): Claim | undefined
  derived(text: string, unit: Unit, computed: Computed): Claim | undefined
  claims(): readonly Claim[]
  sources(): readonly Source[]
}
/** The formula and the inputs of a claim. An undefined input is unknown, and makes the claim unknown. */
export type Computed = { formula: string; inputs: readonly (string | Claim | undefined)[]; kind?: ClaimKind }

export const sha256Of = (output: unknown): string => sha256(Buffer.from(canonicalJson(output)))

function valueAt(output: unknown, pointer: string): unknown {
  let value = output
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

export type Origins = {
  outputs: ReadonlyMap<string, unknown>
  claims: ReadonlyMap<string, Pick<Claim, 'value'>>
}

export function resolveInput(input: string, { outputs, claims }: Origins): unknown {
  if (input.startsWith('=')) return input.slice(1)
  if (isClaimId(input)) return claims.get(input)?.value
  const [source = '', pointer = ''] = input.split('#', 2)
  return valueAt(outputs.get(source), pointer)
}

export const computeClaim = (
  { formula, inputs }: Pick<Claim, 'formula' | 'inputs'>,
  origins: Origins,
): string | undefined =>
  Object.hasOwn(formulas, formula)
    ? formulas[formula]?.(inputs.map((input) => resolveInput(input, origins)))
    : undefined

export function createClaimBook(): ClaimBook {
  const sources: Source[] = []
  const outputs = new Map<string, unknown>()
  const claims = new Map<string, Claim>()
  const sourcesOf = (input: string): readonly string[] => {
    if (input.startsWith('=')) return []
    return isClaimId(input) ? (claims.get(input)?.source_ids ?? []) : [input.split('#', 1)[0] ?? '']
  }
  const derived: ClaimBook['derived'] = (text, unit, { formula, inputs: given, kind = 'derived' }) => {
    const inputs = given.map((input) => (typeof input === 'object' ? input.id : input))
    if (!inputs.every((input) => input !== undefined)) return undefined
    const value = computeClaim({ formula, inputs }, { outputs, claims })
    if (value === undefined || printedValue({ value, unit }) === undefined) return undefined
    const claim: Claim = {
      id: `c${claims.size + 1}`,
      text,
      value,
      unit,
      formula,
      inputs,
      source_ids: [...new Set(inputs.flatMap(sourcesOf))],
      kind,
    }
    claims.set(claim.id, claim)
    return claim
  }
  return {
    source(tool, args, { output, fetchedAt }) {
      const id = `s${sources.length + 1}`
      sources.push({ id, tool, args, fetched_at: fetchedAt.toISOString(), sha256: sha256Of(output) })
      outputs.set(id, output)
      return id
    },
    measured: (text, unit, at) => derived(text, unit, { formula: 'value', inputs: [at], kind: 'measured' }),
    derived,
    claims: () => [...claims.values()],
    sources: () => sources,
  }
}

/**
 * Returns the claims whose value differs from the value that their formula gives for the outputs of the sources.
 */
export function wrongClaims(claims: readonly Claim[], outputs: ReadonlyMap<string, unknown>): Claim[] {
  const byId = new Map(claims.map((claim) => [claim.id, claim]))
  return claims.filter((claim) => computeClaim(claim, { outputs, claims: byId }) !== claim.value)
}
