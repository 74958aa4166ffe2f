import { isIP } from 'node:net'

export type Parse<T> = (text: string) => T

export class BadValue extends Error {}
const reject = (wants: string): never => {
  throw new BadValue(wants)
}

export const text: Parse<string> = (value) => value
export const optional: Parse<string | undefined> = (value) => (value === '' ? undefined : value)
/** Text that a header and a JSON text carry unchanged. */
export const optionalToken: Parse<string | undefined> = (value) =>
  value === '' || /^[!-~]{1,500}$/.test(value)
    ? optional(value)
    : reject('visible ASCII characters without a space, 500 at most')
export const imageApp: Parse<string> = (value) =>
  /^[\w.-]+(?:\/[\w.-]+){1,4}$/.test(value) && !value.includes('..')
    ? value
    : reject('the name of an app, such as fal-ai/flux/schnell')

export const list: Parse<string[]> = (value) =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
export const addresses: Parse<string[]> = (value) => {
  const items = list(value)
  return items.every((item) => isIP(item) > 0) ? items : reject('IP addresses, separated by commas')
}
export const oneOf =
  <const V extends string>(...values: V[]): Parse<V> =>
  (value) =>
    values.find((each) => each === value) ?? reject(`one of ${values.join(', ')}`)
export const optionalOneOf =
  <const V extends string>(...values: V[]): Parse<V | undefined> =>
  (value) =>
    value === '' ? undefined : oneOf(...values)(value)
export const integer =
  (min: number, max: number): Parse<number> =>
  (value) => {
    const number = /^\d{1,12}$/.test(value) ? Number(value) : -1
    return number >= min && number <= max ? number : reject(`a whole number from ${min} to ${max}`)
  }
export const optionalInteger =
  (min: number, max: number): Parse<number | undefined> =>
  (value) =>
    value === '' ? undefined : integer(min, max)(value)
export const decimal: Parse<string> = (value) =>
  /^(0|[1-9]\d{0,15})(\.\d{1,6})?$/.test(value) ? value : reject('a decimal such as 25000')

/** An amount for each chain that the setting does not name, and the amounts of those that it names. */
export type ChainAmounts = { otherwise: string; byChain: ReadonlyMap<string, string> }
export const chainAmounts: Parse<ChainAmounts> = (value) => {
  const [otherwise = '', ...items] = list(value)
  const named = items.map((item) => /^([1-9]\d{0,15}):(.+)$/.exec(item) ?? [])
  const byChain = new Map(named.map(([, chainId = '', amount = '']) => [chainId, decimal(amount)]))
  if (byChain.size < items.length) reject('an amount such as 0.02, then chain:amount, each chain once')
  return { otherwise: decimal(otherwise), byChain }
}
export const url: Parse<string> = (value) =>
  URL.canParse(value) ? value.replace(/\/$/, '') : reject('a URL')
/** An issuer is compared as text, so a trailing slash stays. */
export const optionalIssuer: Parse<string | undefined> = (value) => {
  if (value === '') return undefined
  const issuer = URL.parse(value)
  const isIssuer = issuer && /^https?:$/.test(issuer.protocol) && !issuer.search && !issuer.hash
  return isIssuer ? value : reject('an http or https URL without a query')
}
export const optionalWord: Parse<string | undefined> = (value) =>
  value === '' || /^0x[0-9a-fA-F]{64}$/.test(value) ? optional(value) : reject('0x and 64 hexadecimal digits')
export const optionalUrl: Parse<string | undefined> = (value) => (value === '' ? undefined : url(value))
/** `local` is the world that starts with the gateway; an upstream that is `off` is not served. */
export const upstream: Parse<string | undefined> = (value) => {
  if (value === 'off') return undefined
  return value === 'local' ? value : url(value)
}
export const databaseUrl: Parse<string | undefined> = (value) =>
  value === ''
    ? undefined
    : /^postgres(ql)?:\/\//.test(value)
      ? value
      : reject('a URL that begins with postgresql://')
export const keyPairs: Parse<{ id: string; key: string }[]> = (value) =>
  list(value).map((item) => {
    const at = item.indexOf(':')
    if (at < 1 || Buffer.from(item.slice(at + 1), 'base64').length !== 32)
      reject('id:base64 of 32 bytes, separated by commas')
    return { id: item.slice(0, at), key: item.slice(at + 1) }
  })
export const hexKeys: Parse<string[]> = (value) =>
  list(value).map((item) =>
    /^0x[0-9a-fA-F]{64}$/.test(item) ? item : reject('0x and 64 hex digits each, separated by commas'),
  )
export const evmAddress: Parse<string> = (value) =>
  /^0x[0-9a-fA-F]{40}$/.test(value) ? value : reject('an address: 0x and 40 hex digits')

export const solanaAddresses: Parse<string[]> = (value) => {
  const items = list(value)
  const isAddress = (item: string) => /^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(item)
  return items.every(isAddress) ? items : reject('Solana addresses, separated by commas')
}

const solanaChainId = '7565164'
/** A chain and its contract, or its wallet on Solana, with the most native coins that one payment may release there. */
export const tills: Parse<{ chainId: string; address: string; maxNative: string }[]> = (value) => {
  const found = list(value).map((item) => {
    const [, chainId = '', address = '', maxNative = ''] =
      /^([1-9]\d{0,15}):(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44}):((?:0|[1-9]\d{0,8})(?:\.\d{1,18})?)$/.exec(
        item,
      ) ?? []
    return { chainId, address, maxNative }
  })
  const isDistinct = new Set(found.map(({ chainId }) => chainId)).size === found.length
  const isOfChain = ({ chainId, address }: (typeof found)[number]) =>
    chainId !== '' && (chainId === solanaChainId) === !address.startsWith('0x')
  return found.every(isOfChain) && isDistinct
    ? found
    : reject('chain:address:amount, separated by commas, each chain once')
}

/** Plans as `price:name:credits`; two prices may sell one plan, such as by month and by year. */
export const plans: Parse<{ priceId: string; name: string; credits: bigint }[]> = (value) => {
  const found = list(value).map((item) => {
    const [, priceId = '', name = '', credits = '0'] =
      /^([A-Za-z0-9_-]{1,255}):([a-z][a-z0-9_-]{0,39}):([1-9]\d{0,8})$/.exec(item) ?? []
    return { priceId, name, credits: BigInt(credits) }
  })
  const isDistinct = new Set(found.map(({ priceId }) => priceId)).size === found.length
  return found.every(({ priceId, name }) => priceId !== '' && name !== 'free') && isDistinct
    ? found
    : reject('price:name:credits, separated by commas, each price once')
}

export const optionalEvmAddress: Parse<string | undefined> = (value) =>
  value === '' ? undefined : evmAddress(value)

/** Demands a database server for `standby`; production demands a database server of its own anyway. */
export const problemsOfDurability = ({
  ENVIRONMENT: environment,
  DATABASE_DURABILITY: durability,
  DATABASE_URL: url,
}: {
  ENVIRONMENT: string
  DATABASE_DURABILITY: string | undefined
  DATABASE_URL: string | undefined
}): string[] =>
  environment !== 'production' && durability === 'standby' && url === undefined
    ? [
        'DATABASE_DURABILITY: the embedded server has no standby; set DATABASE_URL to a server that has one, or DATABASE_DURABILITY=single',
      ]
    : []
