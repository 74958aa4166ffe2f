/**
 * A limit order book on integers: price in ticks or 1e-8 units, size in lots. Price first, then time. Everything is a
 * plain number below 2^53, so equal inputs give equal fills on every machine.
 */
export type Owner = string | number

export type TimeInForce = 'gtc' | 'ioc' | 'alo' | 'fok'

export type Resting = {
  readonly id: number
  readonly owner: Owner
  readonly buy: boolean
  readonly price: number
  left: number
  level: Level | null
  before: Resting | null
  after: Resting | null
}

export type Level = { price: number; size: number; count: number; head: Resting | null; tail: Resting | null }

export type Incoming = {
  id: number
  owner: Owner
  buy: boolean
  price: number
  size: number
  timeInForce: TimeInForce
}

export type PlaceResult = { filled: number; rests: boolean; refused: 'crosses' | 'unfillable' | null }

/** Called while matching. They may cancel orders of this book, but never place any. */
export type Listener = {
  /** The size that the resting order may still trade; less than `size` cancels it. */
  allow?: (maker: Resting, size: number) => number
  filled?: (maker: Resting, price: number, size: number) => void
  removed?: (maker: Resting, why: 'self' | 'refused') => void
}

export type Depth = { price: number; size: number; count: number }

export type Book = {
  place: (order: Incoming) => PlaceResult
  cancel: (id: number) => Resting | undefined
  get: (id: number) => Resting | undefined
  best: (options: { buy: boolean }) => number | undefined
  depth: (options: { buy: boolean }, levels: number) => Depth[]
  /** What an order could trade with at once, best first, without own orders, until `take` returns false. */
  reach: (
    order: Pick<Incoming, 'owner' | 'buy' | 'price'>,
    take: (level: { price: number; size: number }) => boolean,
  ) => void
  /** Every resting order, each side best price and oldest first: `restore` of these is the same book. */
  orders: () => Omit<Incoming, 'timeInForce'>[]
  restore: (orders: readonly Omit<Incoming, 'timeInForce'>[]) => void
}

/** Prices of one side, worst first, so that the best is removed from the end. */
type Ladder = { prices: number[]; levels: Map<number, Level>; buy: boolean }

const ladder = ({ buy }: { buy: boolean }): Ladder => ({ prices: [], levels: new Map(), buy })

const position = ({ prices, buy }: Ladder, price: number): number => {
  let low = 0
  let high = prices.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const at = prices[middle] as number
    if (buy ? at < price : at > price) low = middle + 1
    else high = middle
  }
  return low
}

const levelAt = (side: Ladder, price: number): Level => {
  const known = side.levels.get(price)
  if (known) return known
  const level: Level = { price, size: 0, count: 0, head: null, tail: null }
  side.levels.set(price, level)
  side.prices.splice(position(side, price), 0, price)
  return level
}

const dropLevel = (side: Ladder, level: Level): void => {
  side.levels.delete(level.price)
  const { prices } = side
  if (prices[prices.length - 1] === level.price) prices.pop()
  else prices.splice(position(side, level.price), 1)
}

const append = (side: Ladder, resting: Resting): void => {
  const level = levelAt(side, resting.price)
  resting.level = level
  resting.before = level.tail
  if (level.tail) level.tail.after = resting
  else level.head = resting
  level.tail = resting
  level.size += resting.left
  level.count += 1
}

const detach = (side: Ladder, resting: Resting): void => {
  const level = resting.level
  if (!level) return
  if (resting.before) resting.before.after = resting.after
  else level.head = resting.after
  if (resting.after) resting.after.before = resting.before
  else level.tail = resting.before
  level.size -= resting.left
  level.count -= 1
  resting.level = null
  resting.before = null
  resting.after = null
  if (level.count === 0) dropLevel(side, level)
}

const crosses = (order: Pick<Incoming, 'buy' | 'price'>, price: number): boolean =>
  order.buy ? price <= order.price : price >= order.price

/** Levels that could trade at once, without own orders, because they would be cancelled. */
const reach = (
  against: Ladder,
  order: Pick<Incoming, 'owner' | 'buy' | 'price'>,
  take: (level: { price: number; size: number }) => boolean,
): void => {
  for (let i = against.prices.length - 1; i >= 0; i -= 1) {
    const price = against.prices[i] as number
    if (!crosses(order, price)) return
    const level = against.levels.get(price) as Level
    let size = 0
    for (let at = level.head; at; at = at.after) if (at.owner !== order.owner) size += at.left
    if (!take({ price, size })) return
  }
}

const reachable = (against: Ladder, order: Incoming): number => {
  let size = 0
  reach(against, order, (level) => {
    size += level.size
    return size < order.size
  })
  return size
}

export const createBook = (listener: Listener = {}): Book => {
  const bids = ladder({ buy: true })
  const asks = ladder({ buy: false })
  const byId = new Map<number, Resting>()
  const { allow, filled, removed } = listener

  const remove = (resting: Resting): void => {
    detach(resting.buy ? bids : asks, resting)
    byId.delete(resting.id)
  }

  const addResting = (order: Omit<Incoming, 'timeInForce'>, left: number): void => {
    const { id, owner, buy, price } = order
    const resting: Resting = { id, owner, buy, price, left, level: null, before: null, after: null }
    byId.set(id, resting)
    append(buy ? bids : asks, resting)
  }

  const trade = (maker: Resting, level: Level, wanted: number): number => {
    const size = allow ? Math.min(wanted, allow(maker, wanted)) : wanted
    if (size > 0) {
      maker.left -= size
      level.size -= size
      if (maker.left === 0) remove(maker)
      filled?.(maker, level.price, size)
    }
    if (size < wanted && maker.level) {
      remove(maker)
      removed?.(maker, 'refused')
    }
    return Math.max(0, size)
  }

  const match = (order: Incoming): number => {
    const against = order.buy ? asks : bids
    let left = order.size
    while (left > 0 && against.prices.length > 0) {
      const price = against.prices[against.prices.length - 1] as number
      if (!crosses(order, price)) break
      const level = against.levels.get(price) as Level
      const maker = level.head as Resting
      if (maker.owner === order.owner) {
        remove(maker)
        removed?.(maker, 'self')
      } else left -= trade(maker, level, Math.min(maker.left, left))
    }
    return left
  }

  const place = (order: Incoming): PlaceResult => {
    if (order.timeInForce === 'alo') {
      const opposite = order.buy ? asks.prices : bids.prices
      const best = opposite[opposite.length - 1]
      if (best !== undefined && crosses(order, best)) return { filled: 0, rests: false, refused: 'crosses' }
    }
    if (order.timeInForce === 'fok' && reachable(order.buy ? asks : bids, order) < order.size)
      return { filled: 0, rests: false, refused: 'unfillable' }
    const left = match(order)
    const rests = left > 0 && (order.timeInForce === 'gtc' || order.timeInForce === 'alo')
    if (rests) addResting(order, left)
    return { filled: order.size - left, rests, refused: null }
  }

  const side = ({ buy }: { buy: boolean }): Ladder => (buy ? bids : asks)

  const listed = (from: Ladder): Omit<Incoming, 'timeInForce'>[] => {
    const orders: Omit<Incoming, 'timeInForce'>[] = []
    for (const price of [...from.prices].reverse())
      for (let at = (from.levels.get(price) as Level).head; at; at = at.after)
        orders.push({ id: at.id, owner: at.owner, buy: at.buy, price, size: at.left })
    return orders
  }

  return {
    place,
    cancel: (id) => {
      const resting = byId.get(id)
      if (resting) remove(resting)
      return resting
    },
    get: (id) => byId.get(id),
    best: (of) => {
      const { prices } = side(of)
      return prices[prices.length - 1]
    },
    depth: (of, count) => {
      const { prices, levels } = side(of)
      return prices
        .slice(Math.max(0, prices.length - count))
        .reverse()
        .map((price) => {
          const level = levels.get(price) as Level
          return { price, size: level.size, count: level.count }
        })
    },
    reach: (order, take) => reach(order.buy ? asks : bids, order, take),
    orders: () => [...listed(bids), ...listed(asks)],
    restore: (orders) => {
      for (const order of orders) addResting(order, order.size)
    },
  }
}
