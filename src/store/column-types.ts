import pg from 'pg'

const { builtins } = pg.types
/** The OID of bigint[], which the driver supports but its types do not name. */
const int8Array = 1016 as typeof builtins.INT8
const textArray = pg.types.getTypeParser(int8Array) as (value: string) => (string | null)[]

/**
 * int8 becomes a bigint, even in `count(*)`, because a number would round beyond 2^53. numeric stays text,
 * because only the column's meaning says whether it is an integer: amounts in base units are numeric(78,0), and
 * their readers call BigInt. date stays text, because the driver would use midnight in this machine's time zone.
 */
const parsers = new Map<number, (value: string) => unknown>([
  [builtins.INT8, BigInt],
  [builtins.NUMERIC, String],
  [builtins.DATE, String],
  [int8Array, (value) => textArray(value).map((each) => (each === null ? null : BigInt(each)))],
])

/** The types are set per pool: setTypeParser would change every other user of the driver in this process. */
export const columnTypes: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: 'text' | 'binary') =>
    (format !== 'binary' && parsers.get(id)) ||
    pg.types.getTypeParser(id, format as 'text')) as typeof pg.types.getTypeParser,
}
