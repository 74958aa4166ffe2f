/** How a field of an answer is printed; a field without a kind is a plain word, number or text. */
export type Kind = 'time' | 'usd' | 'decimal' | 'fraction' | 'bps' | 'units' | 'change' | 'chain' | 'id'

/** What a person reads of an answer, or of each item of a list; it is derived from the contract. */
export type View = {
  /** The fields that a table shows; absent if the contract declares none. */
  columns?: readonly string[]
  kinds?: Readonly<Record<string, Kind>>
  /** The views of fields that are objects or lists of objects. */
  parts?: Readonly<Record<string, View>>
}
