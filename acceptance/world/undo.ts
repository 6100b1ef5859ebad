/** What has to be undone. Each step registers an effect before it causes it, so that an interrupted run undoes it too. */
import { errorMessage } from '../../core/outcome/error-message.ts';

export interface Effect {
  /** What would be left, as AWS's console names it. */
  readonly what: string;
  /** How to remove it by hand. */
  readonly command: string;
  /** Does nothing if it was never made. Resolves to what stays for a while all the same, such as a key until its deletion. */
  readonly undo: () => Promise<readonly LeftBehind[]>;
}

export interface LeftBehind {
  readonly what: string;
  /** It goes by itself, as AWS demands. */
  readonly expected?: true;
  readonly why: string;
  readonly command: string;
}

export interface Undo {
  register(effect: Effect): void;
  /** For changes of what is registered already. Throws once the removal has begun. */
  checkOpen(): void;
  /** Newest first. An effect that cannot be undone does not stop the others. */
  all(): Promise<readonly LeftBehind[]>;
  /** Undoes nothing (`--keep`), and lists everything. */
  kept(): readonly LeftBehind[];
}

export function undoList(onUndo: (what: string) => void): Undo {
  const effects: Effect[] = [];
  let closed = false;
  // A step that was interrupted may still run.
  const checkOpen = (): void => {
    if (closed) throw new Error('everything is being removed');
  };
  return {
    checkOpen,
    register(effect) {
      checkOpen();
      effects.push(effect);
    },
    async all() {
      const left: LeftBehind[] = [];
      closed = true;
      for (const { what, command, undo } of effects.splice(0).toReversed()) {
        onUndo(what);
        try {
          left.push(...(await undo()));
        } catch (error) {
          left.push({ what, why: `could not be removed: ${errorMessage(error).slice(0, 300)}`, command });
        }
      }
      return left;
    },
    kept: () => effects.map(({ what, command }) => ({ what, why: '--keep', command })),
  };
}
