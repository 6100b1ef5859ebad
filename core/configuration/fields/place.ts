/** Keys and indexes, from the outermost. */
export type Path = readonly (string | number)[];

/** A place in the file, to which problems are attached: `at('aws', 'regions')` is a place inside it. */
export interface Place {
  (...path: Path): Place;
  error(message: string): void;
  /** Allowed, but a reviewer should look twice. */
  warning(message: string): void;
}

type Report = (severity: 'error' | 'warning', path: Path, message: string) => void;

/** The outermost place. `report` gets every problem inside it, with its path. */
export function placeOf(report: Report, path: Path = []): Place {
  return Object.assign((...more: Path) => placeOf(report, [...path, ...more]), {
    error: (message: string) => report('error', path, message),
    warning: (message: string) => report('warning', path, message),
  });
}
