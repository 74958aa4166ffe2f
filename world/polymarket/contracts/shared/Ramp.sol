// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Addresses} from "./Addresses.sol";

/// What both ramps share: a pause for each asset.
abstract contract Ramp {
    mapping(address asset => bool) public paused;

    error NotAdmin(address caller);
    error OnlyUnpaused();

    event Paused(address indexed asset);
    event Unpaused(address indexed asset);

    modifier whenOpen(address asset) {
        require(!paused[asset], OnlyUnpaused());
        _;
    }

    function pause(address asset) external {
        _set(asset, true);
        emit Paused(asset);
    }

    function unpause(address asset) external {
        _set(asset, false);
        emit Unpaused(asset);
    }

    function _set(address asset, bool isPaused) private {
        require(msg.sender == Addresses.ADMIN, NotAdmin(msg.sender));
        paused[asset] = isPaused;
    }
}
