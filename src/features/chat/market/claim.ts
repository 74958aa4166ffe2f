/** A figure of a report: its value, how it was computed, and from which outputs of operations. */

export type Unit =
  | 'usd'
  /** Dollars of a whole market, in thousands, millions or billions. */
  | 'volume'
  | 'price'
  | 'fraction'
  /** A fraction of an hour, such as a funding rate. */
  | 'hourly'
  | 'index'
  | 'ratio'
  | 'size'
  | 'count'
  | 'days'
  | 'time'
  /** A word of the gateway's own, such as a status. */
  | 'word'
  /** A name that a stranger may have written: printed in quotation marks. */
  | 'text'

export type ClaimKind = 'measured' | 'derived' | 'opinion'

/**
 * Inputs are text: `s1#/0/close` is a JSON pointer into the output of a source, `s1` all of it, `c3` the value of
 * another claim, and `=30` a parameter of the formula.
 */
export type Claim = {
  id: string
  /** What the value is, in words. */
  text: string
  /** Decimal text, an ISO time, or a name. */
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
  /** Of the canonical JSON of the output. */
  sha256: string
}

export const isClaimId = (input: string): boolean => /^c\d+$/.test(input)
export const markOf = ({ id }: Claim): string => `[${id.slice(1)}]`
export const claimIdOf = (mark: string): string => `c${mark}`

const namesMax = 64
/** Names that strangers write become plain words: they have no marks, no markup and no link. */
export function plainName(text: string): string {
  const name = text
    .normalize('NFKC')
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .replace(/[^\p{L}\p{N} .,'&/+-]/gu, ' ')
    .replace(/\/{2,}|\bwww\./gi, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, namesMax)
  return name === '' ? 'unnamed' : name
}
