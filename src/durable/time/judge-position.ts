/** Judges whether a database is the one that a gateway knew, or has lost commits that it saw. */

export type Position = {
  /** A number that an operator raises to accept the database as it is; what was seen under a lower one is void. */
  generation: number
  /** The heartbeats of this gateway, over all its starts. */
  beat: number
  /** The identity of the server; null if it shows none. */
  system: string | null
  timeline: number | null
  lsn: bigint | null
}
export type FoundPosition = Position & {
  /** The highest WAL position that any gateway stored on the timeline that this gateway saw last. */
  storedLsn: bigint | null
  /** Whether nothing was ever signed with this database. */
  isEmpty: boolean
}
export type TimeReason = 'went_back' | 'other_server' | 'no_memory' | 'new_timeline'
export type Judgement =
  | { verdict: 'go' }
  /** The position alone does not show whether commits were lost: the chains and the acknowledged commits have to. */
  | { verdict: 'check'; reason: TimeReason }
  | { verdict: 'hold'; reason: TimeReason }

const go: Judgement = { verdict: 'go' }
const wentBack: Judgement = { verdict: 'hold', reason: 'went_back' }
const isLess = (found: bigint | null, seen: bigint | null) => found !== null && seen !== null && found < seen

/** Judges the found position by the seen one: by heartbeats alone if the server shows nothing else. */
export function judgePosition(seen: Position | undefined, found: FoundPosition): Judgement {
  if (!seen) return found.isEmpty ? go : { verdict: 'check', reason: 'no_memory' }
  if (found.generation > seen.generation) return go
  if (found.generation < seen.generation || found.beat < seen.beat) return wentBack
  if (seen.system !== null && found.system !== null && found.system !== seen.system)
    return { verdict: 'hold', reason: 'other_server' }
  const hasTimelines = seen.timeline !== null && found.timeline !== null
  if (!hasTimelines || found.timeline === seen.timeline) return isLess(found.lsn, seen.lsn) ? wentBack : go
  // A node that returned with an earlier timeline has none of the commits of the later one.
  if (found.timeline! < seen.timeline! || isLess(found.storedLsn, seen.lsn)) return wentBack
  return { verdict: 'check', reason: 'new_timeline' }
}

/** Returns the higher of the seen and the found position, after the database was recognized. */
export function rememberPosition(seen: Position | undefined, found: FoundPosition): Position {
  const { isEmpty: _isEmpty, storedLsn, ...position } = found
  const isSameTimeline = seen?.timeline === found.timeline
  const lsn = isSameTimeline && isLess(position.lsn, storedLsn) ? storedLsn : position.lsn
  return { ...position, lsn }
}
