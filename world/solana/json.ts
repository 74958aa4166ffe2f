type SourceReviver = (key: string, value: unknown, context: { source?: string }) => unknown
const parseWithSource = JSON.parse as (text: string, reviver?: SourceReviver) => unknown
const raw = (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON

/** Reads integers beyond 2^53 as bigint, since lamports and token amounts are u64 on the wire. */
export const readJson = (text: string): unknown =>
  /\d{16}/.test(text)
    ? parseWithSource(text, (_key, value, { source }) =>
        typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? '')
          ? BigInt(source as string)
          : value,
      )
    : JSON.parse(text)

/** Writes bigint as a JSON number literal: u64 values such as rentEpoch must keep every digit. */
export const writeJson = (value: unknown): string =>
  JSON.stringify(value, (_key, item) => (typeof item === 'bigint' ? raw(item.toString()) : item))
