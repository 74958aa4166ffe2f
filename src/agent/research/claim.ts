import { printedValue, type Unit } from '#market/figure-text.ts'

/** A claim is a figure of a report: its value, how it was computed, and from which outputs of operations. */

export type ClaimKind = 'measured' | 'derived' | 'opinion'

/**
 * Inputs are text: `s1#/0/close` is a JSON pointer into the output of a source, `s1` its whole output, `c3` the value
 * of another claim, and `=30` a parameter of the formula.
 */
export type Claim = {
  id: string
  /** The words that name the figure. */
  text: string
  /** The value as decimal text, an ISO time, or a name. */
  value: string
  unit: Unit
  formula: string
  inputs: readonly string[]
  source_ids: readonly string[]
  kind: ClaimKind
}

export type Source = {
  id: string
  tool: string
  args: unknown
  fetched_at: string
  /** The hash of the canonical JSON of the output. */
  sha256: string
}

export const isClaimId = (input: string): boolean => /^c\d+$/.test(input)
export const markOf = ({ id }: Claim): string => `[${id.slice(1)}]`
/** Writes the value of a claim with its mark, for a sentence. */
export const cite = (claim: Claim): string => `${printedValue(claim) ?? 'unknown'} ${markOf(claim)}`
export const claimIdOf = (mark: string): string => `c${mark}`

/**
 * A formula of a claim. It takes the values of its inputs and returns decimal text, a time or a name, or undefined if
 * an input is missing. The same inputs always give the same text, so anybody can compute a claim again.
 */
export type Formula = (inputs: readonly unknown[]) => string | undefined
