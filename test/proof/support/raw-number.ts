/** JSON text in which one field has a literal that JSON.stringify could never write. */
export function withRawNumber(body: object, field: string, literal: string): string {
  const placeholder = 'spliced-in-here'
  return JSON.stringify({ ...body, [field]: placeholder }).replace(`"${placeholder}"`, () => literal)
}

/** The exact value of a number as it is written: `digits` times ten to the power of `-places`. */
export type Exact = { digits: bigint; places: number }

/** A separate implementation for the tests: an oracle that shares code with its subject shares its errors. */
export function exactOf(text: string): Exact | undefined {
  const match = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?$/.exec(text)
  if (!match) return undefined
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  let digits = BigInt(whole + fraction)
  let places = fraction.length - Number(exponent)
  if (digits === 0n) return { digits: 0n, places: 0 }
  while (digits % 10n === 0n) {
    digits /= 10n
    places--
  }
  if (places < 0) {
    digits *= 10n ** BigInt(-places)
    places = 0
  }
  return { digits: sign ? -digits : digits, places }
}

export const isSameNumber = (a: Exact, b: Exact): boolean => a.digits === b.digits && a.places === b.places

export function compareNumbers(a: Exact, b: Exact): number {
  const places = Math.max(a.places, b.places)
  const left = a.digits * 10n ** BigInt(places - a.places)
  const right = b.digits * 10n ** BigInt(places - b.places)
  return left < right ? -1 : left > right ? 1 : 0
}
